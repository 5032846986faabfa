//! Which files is the console made of? Those that the build script embedded, compressed.

use actix_web::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, HeaderMap,
    REFERRER_POLICY, VARY,
};
use actix_web::{HttpRequest, HttpResponse, web};

use crate::api::error::ApiError;

/// Nothing of another origin, nothing inline, no framing.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// The name of a file that the page loads changes with its content.
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// The page names the files of this build: a browser asks each time whether it changed.
const REVALIDATED: &str = "no-cache";

/// The console of this build.
struct Bundle {
    /// The HTML page, which every path of the console shows.
    page: &'static [u8],
    /// The files that the page loads.
    files: &'static [BundledFile],
}

/// A file that the page loads.
struct BundledFile {
    name: &'static str,
    media: &'static str,
    gzip: &'static [u8],
}

// `BUNDLE: Result<Bundle, &str>`: the files, or why there are none, in one sentence.
include!(concat!(env!("OUT_DIR"), "/console_bundle.rs"));

/// Whether the console is part of this build.
pub(crate) const fn is_built() -> bool {
    BUNDLE.is_ok()
}

/// The file with the style of the console.
pub(super) fn style() -> Option<&'static str> {
    let mut files = BUNDLE.as_ref().ok()?.files.iter();
    let style = files.find(|file| file.name.ends_with(".css"));
    style.map(|file| file.name)
}

/// GET of any path of the console: the page, which shows what the path names.
pub(super) async fn page() -> HttpResponse {
    match BUNDLE {
        Ok(bundle) => HttpResponse::Ok()
            .content_type("text/html; charset=utf-8")
            .insert_header((CACHE_CONTROL, REVALIDATED))
            .insert_header((CONTENT_SECURITY_POLICY, POLICY))
            .insert_header((REFERRER_POLICY, "no-referrer"))
            .body(bundle.page),
        Err(why) => HttpResponse::NotImplemented()
            .content_type("text/plain; charset=utf-8")
            .body(format!("{why}\n")),
    }
}

/// GET of a file. It is sent compressed, as every browser accepts.
pub(super) async fn file(request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let name = request.match_info().query("file");
    let files = BUNDLE.as_ref().map_or(&[][..], |bundle| bundle.files);
    let file = files.iter().find(|file| file.name == name);
    let file = file.ok_or_else(ApiError::path_unknown)?;
    if !accepts_gzip(request.headers()) {
        return Err(ApiError::not_acceptable("send Accept-Encoding: gzip"));
    }
    // Nothing else has a name with a digest, after a hyphen.
    let cached = match file.name.contains('-') {
        true => IMMUTABLE,
        false => REVALIDATED,
    };
    Ok(HttpResponse::Ok()
        .content_type(file.media)
        .insert_header((CACHE_CONTROL, cached))
        .insert_header((CONTENT_ENCODING, "gzip"))
        .insert_header((VARY, ACCEPT_ENCODING.as_str()))
        .body(web::Bytes::from_static(file.gzip)))
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING);
    let mut words = accepted
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| {
            let codings = line.split(',');
            codings.map(|coding| coding.split(';').next().unwrap_or_default().trim())
        });
    words.any(|word| word.eq_ignore_ascii_case("gzip") || word == "*")
}
