//! The console at `/console`: its page, signing in, and the API for browsers that are signed in.
//!
//! Below `/console/api` every route of the API is served a second time, for the session of the
//! browser. None of these paths is part of the public API, and none is in the OpenAPI document.

mod bundle;
mod signing_in;
mod single_sign_on;

use actix_web::http::Method;
use actix_web::http::header::LOCATION;
use actix_web::{HttpResponse, web};

use super::body::BodyLimit;
use super::call::{CallCredentials, RouteGuard};
use super::error::ApiError;
use super::{Mounting, ServedRoutes, methods};

pub(crate) use bundle::is_built;

/// Where the console is.
const CONSOLE: &str = "/console";

/// Where the identity provider sends a browser back.
const OIDC_CALLBACK: &str = "/console/oidc/callback";

/// GET of `/`: leads to the console, or to the documentation if there is none.
pub(super) async fn front() -> HttpResponse {
    let location = if is_built() { CONSOLE } else { "/docs" };
    HttpResponse::Found()
        .insert_header((LOCATION, location))
        .finish()
}

/// Mounts everything below `/console`.
pub(super) fn mount(app: &mut web::ServiceConfig, served: ServedRoutes, open_body: BodyLimit) {
    let guard = RouteGuard::open("/console/session");
    let session = web::resource(guard.route)
        .app_data(open_body)
        .route(guard.before(web::post().to(signing_in::sign_in)))
        .route(guard.before(web::get().to(signing_in::show)))
        .route(guard.before(web::delete().to(signing_in::sign_out)));
    app.service(session);
    let guard = RouteGuard::open("/console/sessions");
    let everywhere = web::delete().to(signing_in::sign_out_everywhere);
    app.route(guard.route, guard.before(everywhere));
    let guard = RouteGuard::open("/console/codes");
    let codes = web::resource(guard.route)
        .app_data(open_body)
        .route(guard.before(web::post().to(signing_in::create_code)));
    app.service(codes);
    app.service(shown("/console/oidc", || web::to(single_sign_on::show)));
    for (path, route) in [
        (
            "/console/oidc/sign-in",
            web::get().to(single_sign_on::begin),
        ),
        (OIDC_CALLBACK, web::get().to(single_sign_on::finish)),
    ] {
        app.route(path, RouteGuard::open(path).before(route));
    }
    let for_sessions = web::scope("/console/api").configure(|scope| {
        Mounting {
            served,
            credentials: CallCredentials::Session,
            open_body,
        }
        .mount(scope);
        let unknown = async || Err::<HttpResponse, _>(ApiError::path_unknown());
        scope.default_service(RouteGuard::open("/console/api").before(web::route().to(unknown)));
    });
    app.service(for_sessions);
    app.service(shown("/console/assets/{file}", || web::to(bundle::file)));
    for path in [CONSOLE, "/console/{view:.*}"] {
        app.service(shown(path, || web::to(bundle::page)));
    }
}

/// What anybody may get at a path.
fn shown(path: &'static str, route: fn() -> actix_web::Route) -> actix_web::Resource {
    let methods = methods(&Method::GET).into_iter();
    methods.fold(web::resource(path), |resource, method| {
        resource.route(RouteGuard::open(path).before(route().method(method)))
    })
}
