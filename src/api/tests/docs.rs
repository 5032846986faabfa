//! Is the documentation page complete, and does it load nothing from another origin?

use std::collections::BTreeSet;

use actix_web::http::StatusCode;

use super::test_service::{CallAnswer, TestService};
use crate::api::routes::ROUTES;

#[actix_web::test]
async fn every_operation_is_on_the_page_once_with_a_call_to_copy() {
    let page = text(&served("/docs").await);
    for route in ROUTES {
        let path = format!("<code class=\"path\">{}</code>", route.path);
        let method = format!(">{}</span>", route.method);
        let is_its = |article: &&str| article.contains(&path) && article.contains(&method);
        let articles: Vec<_> = page.split("<article id=\"").filter(is_its).collect();
        assert_eq!(articles.len(), 1, "{} {}", route.method, route.path);
        let (article, _) = articles[0].split_once("</article>").unwrap();
        assert!(article.contains("curl "), "{path}");
        let (id, _) = article.split_once('"').unwrap();
        let links = page.matches(&format!("<a href=\"#{id}\">")).count();
        assert!(links > 0, "no link to {id}");
    }
}

#[actix_web::test]
async fn the_page_and_the_document_have_the_values_of_the_settings() {
    let page = text(&served("/docs").await);
    assert!(!page.contains("{{"), "a placeholder is left");
    let document = text(&served("/openapi.json").await);
    assert!(!document.contains("{{"), "a placeholder is left");
    assert!(page.contains("or else after 2 days"), "the default expiry");
    assert!(
        document.contains("\"maxItems\":100"),
        "devices of a bulk call"
    );
}

#[actix_web::test]
async fn default_values_are_on_the_page() {
    let page = text(&served("/docs").await);
    let (_, listed) = page.split_once("<article id=\"listActions\"").unwrap();
    let (listed, _) = listed.split_once("</article>").unwrap();
    for (name, default) in [("page", "1"), ("pageSize", "10"), ("sort", "-created")] {
        let name = format!("<code class=\"name\">{name}</code>");
        let (_, row) = listed.split_once(&name).unwrap();
        let (row, _) = row.split_once("</tr>").unwrap();
        assert!(
            row.contains(&format!("Default: <code>{default}</code>")),
            "{row}"
        );
    }
}

#[actix_web::test]
async fn every_link_of_the_page_has_a_target_on_it() {
    let page = text(&served("/docs").await);
    let ids: BTreeSet<_> = values(&page, "id=\"").collect();
    let links: Vec<_> = values(&page, "href=\"").collect();
    assert!(links.len() > ROUTES.len());
    for link in links.into_iter().chain(values(&page, "src=\"")) {
        match link.strip_prefix('#') {
            Some(id) => assert!(ids.contains(id), "{link}"),
            None => assert_eq!(served(link).await.status, StatusCode::OK, "{link}"),
        }
    }
}

#[actix_web::test]
async fn a_browser_loads_nothing_from_another_origin() {
    for path in ["/docs", "/docs/style.css", "/docs/script.js"] {
        let answer = served(path).await;
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'self';"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        let text = text(&answer);
        // A policy without exceptions forbids inline scripts and styles.
        for forbidden in [
            " style=",
            "<style",
            "<script>",
            " onclick=",
            "url(",
            "@import",
        ] {
            assert!(!text.contains(forbidden), "{path} has {forbidden}");
        }
    }
}

fn values<'a>(page: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
    let parts = page.split(attribute).skip(1);
    parts.filter_map(|part| part.split('"').next())
}

async fn served(path: &str) -> CallAnswer {
    let answer = TestService::new()
        .call(TestService::request("GET", path))
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{path}");
    answer
}

fn text(answer: &CallAnswer) -> String {
    String::from_utf8(answer.bytes.to_vec()).unwrap()
}
