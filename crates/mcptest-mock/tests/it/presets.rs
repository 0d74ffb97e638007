//! The bundled catalogs.

use mcptest_mock::{MockServer, Preset};

use crate::{INITIALIZE, answer};

#[test]
fn every_preset_loads_and_lists() {
    for (preset, least) in Preset::ALL.into_iter().zip([4, 10, 300, 9]) {
        let manifest = preset.manifest().unwrap_or_else(|error| panic!("{error}"));
        let server = MockServer::new(manifest);
        assert!(
            server.tool_count() >= least,
            "{preset:?}: {}",
            server.tool_count()
        );
        let replies = answer(
            &server,
            &[
                INITIALIZE,
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            ],
        );
        let tools = replies[1]["result"]["tools"].as_array().expect("tools");
        assert_eq!(tools.len(), server.tool_count());
    }
}

#[test]
fn the_hostile_preset_contains_attacks() {
    let server = MockServer::new(
        Preset::Hostile
            .manifest()
            .unwrap_or_else(|error| panic!("{error}")),
    );
    let replies = answer(
        &server,
        &[
            INITIALIZE,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_weather","arguments":{"city":"Rome"}}}"#,
        ],
    );
    let shown = format!("{}", replies[1]);
    assert!(
        shown.contains("\\u001b[2K") && shown.contains("<script>"),
        "{shown}"
    );
    let text = replies[2]["result"]["content"][0]["text"]
        .as_str()
        .expect("a text");
    assert!(
        text.contains('\u{1b}') && text.contains("sunny in Rome"),
        "{text:?}"
    );
}
