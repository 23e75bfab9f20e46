//! Answers to the byte, as openstack-placement 16.0.0 gave them to the same requests.

use serde_json::json;

use crate::server::{Answer, Server};

const NEWEST: &str = "OpenStack-API-Version: placement 1.39";
const VARY: &str = "openstack-api-version";

/// The body with the request's id taken out.
fn body(answer: &Answer) -> String {
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    match answer.header("x-openstack-request-id") {
        Some(id) => text.replace(id, "ID"),
        None => text,
    }
}

fn provider(n: u32) -> String {
    format!("{n:08x}-0000-4000-8000-000000000000")
}

fn make(server: &Server, n: u32) {
    let body = json!({"name": format!("h{n}"), "uuid": provider(n)});
    let made = server.json("POST", "/resource_providers", &[NEWEST], &body);
    assert_eq!(made.status, 200, "{made:?}");
}

#[test]
fn a_version_that_is_not_served_is_406_with_those_that_are() {
    let server = Server::start();
    for version in ["-1.0", "1.40", "1_0.5"] {
        let header = format!("OpenStack-API-Version: placement {version}");
        let told = server.send("GET", "/traits", &[&header], b"");
        assert_eq!((told.status, told.header("vary")), (406, None), "{told:?}");
        assert_eq!(told.header("openstack-api-version"), None, "{told:?}");
        assert_eq!(
            told.error(),
            json!({
                "status": 406,
                "title": "Not Acceptable",
                "detail": format!(
                    "The resource could not be generated that was acceptable to your browser (content of type \
                     application/json. \n\n Invalid microversion: Unacceptable version header: {version}"
                ),
                "request_id": told.header("x-openstack-request-id"),
                "max_version": "1.39",
                "min_version": "1.0",
            })
        );
    }
    let told = server.send("GET", "/traits", &["OpenStack-API-Version: placement +1. 6"], b"");
    assert_eq!(told.header("openstack-api-version"), Some("placement 1.6"), "{told:?}");
}

#[test]
fn errors_are_html_or_text_where_accept_rules_json_out() {
    let server = Server::start();
    let html = "<html>\n <head>\n  <title>404 Not Found</title>\n </head>\n <body>\n  <h1>404 Not Found</h1>\n  \
                The resource could not be found.<br /><br />\n\n\n\n </body>\n</html>";
    for accept in ["application/json;q=0, */*", "nonsense", "text/html;q=2", "text/*"] {
        let told = server.send("GET", "/nothing", &[&format!("Accept: {accept}")], b"");
        assert_eq!((told.status, body(&told).as_str()), (404, html), "{accept}");
        assert_eq!(told.header("content-type"), Some("text/html; charset=UTF-8"));
    }
    for accept in ["image/png", "application/json;q=0", "application/json; charset=utf-8"] {
        let told = server.send("DELETE", "/traits", &[&format!("Accept: {accept}")], b"");
        let text = "405 Method Not Allowed\n\nThe method DELETE is not allowed for this resource. \n\n \
                    The method specified is not allowed for this resource.";
        assert_eq!((told.status, body(&told).as_str()), (405, text), "{accept}");
        assert_eq!(told.header("content-type"), Some("text/plain; charset=UTF-8"));
        assert_eq!((told.header("allow"), told.header("vary")), (Some("GET"), Some(VARY)));
    }
    let told = server.send("HEAD", "/traits", &[], b"");
    assert_eq!((told.status, told.header("content-type")), (405, Some("text/html; charset=UTF-8")));
}

#[test]
fn a_body_without_a_content_type_is_a_bad_request() {
    let server = Server::start();
    for header in ["X-Other: 1", "Content-Type:"] {
        let told = server.send("POST", "/resource_providers", &[header], b"{\"name\": \"x\"}");
        assert_eq!((told.status, told.header("vary")), (400, None), "{told:?}");
        assert_eq!(told.header("openstack-api-version"), Some("placement 1.0"), "{told:?}");
        assert_eq!(
            told.error()["detail"],
            "The server could not comply with the request since it is either malformed or otherwise incorrect.\
             \n\n content-type header required when content-length > 0  "
        );
    }
    let told =
        server.send("POST", "/resource_providers", &["Content-Type: text/plain; x=1"], b"{}");
    assert_eq!(told.status, 415);
    assert_eq!(
        told.error()["detail"],
        "The request media type text/plain; x=1 is not supported by this server. \n\n \
         The media type text/plain is not supported, use application/json"
    );
}

#[test]
fn vary_is_not_on_every_error() {
    let server = Server::start();
    make(&server, 1);
    let (known, unknown) = (provider(1), provider(9));
    let told = |path: &str| {
        let answer = server.send("GET", path, &[NEWEST], b"");
        assert_eq!(answer.header("openstack-api-version"), Some("placement 1.39"), "{answer:?}");
        (answer.status, answer.header("vary").map(str::to_owned))
    };
    let varies = Some(VARY.to_owned());
    for path in [
        "/nothing",
        &format!("/resource_providers/{unknown}"),
        &format!("/resource_providers/{unknown}/aggregates"),
        "/resource_classes/CUSTOM_NO",
    ] {
        assert_eq!(told(path), (404, None), "{path}");
    }
    for path in [
        "/traits/CUSTOM_NO",
        &format!("/resource_providers/{unknown}/inventories"),
        &format!("/resource_providers/{known}/inventories/VCPU"),
        &format!("/resource_providers/{unknown}/usages"),
    ] {
        assert_eq!(told(path), (404, varies.clone()), "{path}");
    }
    let forbidden = server.send("GET", "/traits", &[NEWEST, "X-Roles: reader"], b"");
    assert_eq!((forbidden.status, forbidden.header("vary")), (403, None));
}

#[test]
fn a_missing_parent_is_told_before_a_taken_uuid() {
    let server = Server::start();
    make(&server, 1);
    for (parent, why) in [
        (provider(9), "parent provider UUID does not exist."),
        (
            provider(1),
            "parent provider UUID cannot be same as UUID. Please set parent provider UUID to None if there is \
             no parent.",
        ),
    ] {
        let again = json!({"name": "h1", "uuid": provider(1), "parent_provider_uuid": parent});
        let told = server.json("POST", "/resource_providers", &[NEWEST], &again);
        assert_eq!(told.status, 400, "{told:?}");
        assert_eq!(
            told.error()["detail"],
            format!(
                "The server could not comply with the request since it is either malformed or otherwise \
                 incorrect.\n\n Unable to create resource provider \"h1\", {}: Object action create failed \
                 because: {why}  ",
                provider(1)
            )
        );
    }
}

#[test]
fn a_reshape_checks_one_provider_after_the_other() {
    let server = Server::start();
    make(&server, 1);
    make(&server, 5);
    let part =
        |generation: u32| json!({"inventories": {}, "resource_provider_generation": generation});
    let reshape = |first: (&str, u32), second: (&str, u32)| {
        // A map keeps the order of what is put into it.
        let mut inventories = serde_json::Map::new();
        for (uuid, generation) in [first, second] {
            inventories.insert(uuid.to_owned(), part(generation));
        }
        let body = json!({"inventories": inventories, "allocations": {}});
        let told = server.json("POST", "/reshaper", &[NEWEST, "X-Roles: service"], &body);
        (told.status, told.error()["code"].as_str().unwrap_or_default().to_owned())
    };
    let conflict = (409, "placement.concurrent_update".to_owned());
    let not_found = (400, "placement.resource_provider.not_found".to_owned());
    let upper = "0000000A-0000-4000-8000-000000000000";
    for unknown in [provider(3).as_str(), upper] {
        assert_eq!(reshape((&provider(5), 7), (unknown, 0)), conflict, "{unknown}");
        assert_eq!(reshape((unknown, 0), (&provider(1), 7)), not_found, "{unknown}");
        assert_eq!(reshape((&provider(5), 0), (unknown, 0)), not_found, "{unknown}");
    }
}

#[test]
fn figures_of_inventories_are_checked_before_their_classes() {
    let server = Server::start();
    make(&server, 1);
    let path = format!("/resource_providers/{}/inventories", provider(1));
    let record = json!({"total": 1, "allocation_ratio": -1.0, "resource_provider_generation": 0});
    let told = server.json("PUT", &format!("{path}/CUSTOM_NO"), &[NEWEST], &record);
    assert_eq!(told.status, 400, "{told:?}");
    assert!(
        body(&told).contains("Invalid inventory for 'CUSTOM_NO' on resource provider"),
        "{told:?}"
    );
    let all = |generation: u32, record: serde_json::Value| {
        let inventories = json!({"vcpu": {"total": 1}, "VCPU": record});
        json!({"resource_provider_generation": generation, "inventories": inventories})
    };
    let told = server.json(
        "PUT",
        &path,
        &[NEWEST],
        &all(0, json!({"total": 1, "allocation_ratio": -1.0})),
    );
    assert!(body(&told).contains("Invalid inventory for 'VCPU' on resource provider"), "{told:?}");
    let told = server.json("PUT", &path, &[NEWEST], &all(7, json!({"total": 1})));
    assert_eq!(told.status, 409, "the generation is checked before the class: {told:?}");
    let told = server.json("PUT", &path, &[NEWEST], &all(0, json!({"total": 1})));
    assert!(body(&told).contains("No such resource class vcpu."), "{told:?}");
}

#[test]
fn methods_are_listed_in_placements_order() {
    let server = Server::start();
    let told =
        server.send("PATCH", &format!("/resource_providers/{}", provider(1)), &[NEWEST], b"");
    assert_eq!((told.status, told.header("allow")), (405, Some("GET, DELETE, PUT")));
    let path = format!("/resource_providers/{}/inventories", provider(1));
    let told = server.send("DELETE", &path, &["OpenStack-API-Version: placement 1.4"], b"");
    assert_eq!((told.status, told.header("allow")), (405, None));
    assert_eq!(told.error()["detail"], "The method DELETE is not allowed for this resource. \n\n ");
}

#[test]
fn the_first_fault_in_a_query_is_told() {
    let server = Server::start();
    make(&server, 1);
    let ask = |query: &str| {
        let told = server.send("GET", query, &[NEWEST], b"");
        (told.status, body(&told))
    };
    let (status, told) = ask("/allocation_candidates?required=HW_CPU_X86_VMX,&resources=VCPU");
    assert!(status == 400 && told.contains("Got an empty trait in: HW_CPU_X86_VMX,"), "{told}");
    let (status, told) = ask("/allocation_candidates?resources=VCPU&required=HW_CPU_X86_VMX,");
    assert!(status == 400 && told.contains("Got: VCPU."), "{told}");
    let (status, told) =
        ask("/allocation_candidates?member_of=x,y&resources=VCPU&same_subtree=,_Z");
    assert!(status == 400 && told.contains("Empty string (unsuffixed group)"), "{told}");
    let old = ["OpenStack-API-Version: placement 1.27"];
    let told =
        server.send("GET", "/allocation_candidates?resources=VCPU:1&member_of=!x", &old, b"");
    assert!(body(&told).contains("to contain valid UUID(s). Got: x"), "{told:?}");
    // An aggregate that nobody is in ends the work before the class is looked up, whatever uuid is asked for.
    let aggregate = provider(7);
    let listed = ask(&format!(
        "/resource_providers?uuid={}&member_of={aggregate}&resources=CUSTOM_NO:1",
        provider(1)
    ));
    assert_eq!(listed, (200, "{\"resource_providers\":[]}".to_owned()));
    let (status, told) =
        ask(&format!("/resource_providers?uuid={aggregate}&resources=CUSTOM_NO:1"));
    assert!(status == 400 && told.contains("No such resource class CUSTOM_NO."), "{told}");
}

#[test]
fn of_two_violations_the_one_that_the_schema_names_first_is_told() {
    let server = Server::start();
    let allocation =
        json!({"allocations": {}, "user_id": "u", "PROJECT_ID": "p", "consumer_generation": null});
    let path = format!("/allocations/{}", provider(4));
    let version = "OpenStack-API-Version: placement 1.36";
    let told = server.json("PUT", &path, &[version], &allocation);
    assert!(
        body(&told).contains("Additional properties are not allowed ('PROJECT_ID' was unexpected)"),
        "{told:?}"
    );
}

#[test]
fn an_amount_beyond_every_limit_is_a_conflict() {
    let server = Server::start();
    make(&server, 1);
    let put = |amount: f64| {
        let told = server.json(
            "PUT",
            &format!("/allocations/{}", provider(4)),
            &[NEWEST],
            &json!({
                "allocations": {provider(1): {"resources": {"VCPU": amount}}},
                "project_id": "p", "user_id": "u", "consumer_generation": null, "consumer_type": "INSTANCE",
            }),
        );
        (told.status, told.error()["detail"].to_string())
    };
    let (status, told) = put(1e20);
    assert!(status == 409 && told.contains("Inventory for 'VCPU' on resource provider"), "{told}");
    let inventory =
        json!({"resource_class": "VCPU", "total": 2_147_483_647, "allocation_ratio": 1e9});
    let path = format!("/resource_providers/{}/inventories", provider(1));
    assert_eq!(server.json("POST", &path, &[NEWEST], &inventory).status, 201);
    for amount in [2_147_483_648.0, 1e20] {
        let (status, told) = put(amount);
        assert!(status == 409 && told.contains("would violate inventory constraints"), "{told}");
    }
    assert_eq!(
        server.send("DELETE", &format!("{path}/vcpu"), &[NEWEST], b"").error()["detail"],
        "The resource could not be found.\n\n No inventory of class vcpu found for delete: No such resource class \
         vcpu.  "
    );
}
