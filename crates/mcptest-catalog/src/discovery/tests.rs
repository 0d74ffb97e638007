use proptest::prelude::*;
use serde_json::json;

use super::*;

fn tools(prompt: &str, tools: &[&str]) -> Vec<String> {
    names_in_prompt(prompt, [], tools.iter().copied())
}

#[test]
fn ordinary_words_are_in_order_and_plain() {
    let words: Vec<&str> = ORDINARY.split_whitespace().collect();
    assert!(words.len() > 300);
    assert!(words.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(
        words
            .iter()
            .all(|word| word.len() > 2 && word.bytes().all(|b| b.is_ascii_lowercase()))
    );
}

#[test]
fn the_documents_prompt_is_name_free() {
    let prompt = "Find the current population of Paris and pull the source document for it.";
    assert!(
        names_in_prompt(
            prompt,
            ["catalog", "fulfillment"],
            ["search", "web_search", "fetch", "get"]
        )
        .is_empty()
    );
}

#[test]
fn several_words_count_however_they_are_joined() {
    for prompt in [
        "Call get_weather now.",
        "call Get-Weather",
        "getWeather for Paris",
        "GetWeather",
        "GET_WEATHER!",
        "(get weather)",
        "please get  weather\nfor Paris",
        "get\nweather",
        "weather.get_weather",
        "weather__get_weather",
        "`get_weather`",
        "getWeather()",
    ] {
        for name in [
            "get_weather",
            "get-weather",
            "getWeather",
            "GetWeather",
            "get weather",
        ] {
            assert_eq!(tools(prompt, &[name]), [name], "{name} in {prompt:?}");
        }
    }
}

#[test]
fn parts_of_other_words_and_names_do_not_count() {
    for prompt in [
        "get_weather_forecast",
        "forget_weather",
        "getWeatherForecast",
        "get-weather-forecast",
        "my_get_weather",
        "target weather",
        "get weathered",
        "get. Weather permitting",
        "get, weather",
        "weather get",
    ] {
        assert_eq!(
            tools(prompt, &["get_weather"]),
            Vec::<String>::new(),
            "{prompt:?}"
        );
    }
    assert!(tools("prefetching firecrawlers", &["firecrawl"]).is_empty());
}

#[test]
fn one_uncommon_word_counts_anywhere() {
    for prompt in [
        "Ask GitHub.",
        "my github issues",
        "GITHUB-hosted",
        "on github?",
        "git-or-github",
    ] {
        assert_eq!(
            names_in_prompt(prompt, ["github"], []),
            ["github"],
            "{prompt:?}"
        );
    }
    assert_eq!(names_in_prompt("Ask github.", ["GitHub"], []), ["GitHub"]);
    assert!(names_in_prompt("github_token", ["github"], []).is_empty());
    assert_eq!(tools("firecrawl it", &["firecrawl"]), ["firecrawl"]);
}

#[test]
fn one_ordinary_word_counts_only_as_a_name() {
    for prompt in [
        "Search for shoes.",
        "I search. Then I find.",
        "Do a search (any kind).",
        "web-search",
        "the search engine",
        "a tool to search with",
        "Is this a tool? Search!",
        "He said \"search for it\".",
        "research",
        "it's what search's for",
    ] {
        assert!(tools(prompt, &["search"]).is_empty(), "{prompt:?}");
    }
    for prompt in [
        "Use `search`.",
        "Run `search --all` first.",
        "Use search(\"x\").",
        "Use \"search\".",
        "Use 'Search'.",
        "Use “search”.",
        "Use „search“.",
        "Use «search».",
        "the search tool",
        "the Search-tool",
        "both the search and the search\ntools",
        "the search MCP server",
        "a tool called search",
        "the tool named search",
    ] {
        assert_eq!(tools(prompt, &["search"]), ["search"], "{prompt:?}");
    }
    // A later mark counts even if the first mention has none.
    assert_eq!(tools("Search with `search`.", &["search"]), ["search"]);
}

#[test]
fn qualified_words_count() {
    for prompt in [
        "catalog.search",
        "catalog/search",
        "catalog__search",
        "catalog::search",
        "catalog:search",
    ] {
        assert_eq!(
            names_in_prompt(prompt, ["catalog"], ["search"]),
            ["catalog", "search"],
            "{prompt}"
        );
    }
    // The end of a sentence qualifies nothing, nor does a word that is not offered.
    assert!(
        names_in_prompt("Look into the catalog. Search it.", ["catalog"], ["search"]).is_empty()
    );
    assert!(names_in_prompt("example.search", ["catalog"], ["search"]).is_empty());
}

#[test]
fn short_names_and_numbers_need_a_mark() {
    assert!(tools("Go to 42, then do it.", &["go", "42", "it", "x"]).is_empty());
    assert_eq!(tools("Use `go`.", &["go"]), ["go"]);
}

#[test]
fn each_name_once_servers_first() {
    let found = find_names(
        "get_weather, getWeather; the time server and the time tool",
        ["time"],
        ["get_weather", "time", "get_weather", ""],
    );
    let names: Vec<_> = found
        .iter()
        .map(|found| (found.name.as_str(), found.kind, found.written.as_str()))
        .collect();
    assert_eq!(
        names,
        [
            ("time", NameKind::Server, "time"),
            ("get_weather", NameKind::Tool, "get_weather"),
            ("time", NameKind::Tool, "time"),
        ]
    );
    assert_eq!(
        names_in_prompt(
            "the time tool, get weather",
            ["time"],
            ["time", "get_weather"]
        ),
        ["time", "get_weather"]
    );
}

#[test]
fn other_scripts_do_not_break_it() {
    assert_eq!(
        tools("Bitte größe_messen für İstanbul ẞ", &["größe_messen"]),
        ["größe_messen"]
    );
    assert_eq!(tools("日本 検索ツール", &["検索ツール"]), ["検索ツール"]);
    assert!(tools("", &["x_y"]).is_empty());
    assert!(tools("🙂", &["🙂", "---"]).is_empty());
}

#[test]
fn the_block_warns_or_refuses() {
    let block = |value| serde_json::from_value::<Discovery>(value).unwrap();
    let prompt = "Use the search tool to get weather.";
    let check = |value| block(value).check(prompt, ["web"], ["search", "get_weather"]);
    assert_eq!(check(json!({})), None);
    assert_eq!(check(json!({"name_free": false, "strict": true})), None);
    let warning = check(json!({"name_free": true})).unwrap();
    assert!(warning.warning);
    assert_eq!(
        warning.message,
        "the prompt is declared name-free but names tool `search`, tool `get_weather` (\"get weather\")"
    );
    assert!(
        !check(json!({"name_free": true, "strict": true}))
            .unwrap()
            .warning
    );
    assert_eq!(
        block(json!({"name_free": true})).check("Will it rain?", ["web"], ["get_weather"]),
        None
    );
    assert!(serde_json::from_value::<Discovery>(json!({"namefree": true})).is_err());
}

proptest! {
    #[test]
    fn what_is_found_is_offered_and_written(prompt in "[a-zA-Z_ .`\"-]{0,40}", names in prop::collection::vec("[a-zA-Z_-]{1,8}", 0..6)) {
        for found in find_names(&prompt, [], names.iter().map(String::as_str)) {
            prop_assert!(names.contains(&found.name));
            prop_assert!(prompt.contains(&found.written));
        }
    }

    #[test]
    fn a_name_of_several_words_between_spaces_is_always_found(
        name in "[a-z]{3,8}[_-][a-z]{3,8}", before in "([a-z]{1,6} ){0,3}", after in "( [a-z]{1,6}){0,3}",
    ) {
        let prompt = format!("{before}{name}{after}");
        prop_assert_eq!(tools(&prompt, &[&name]), [name]);
    }

    #[test]
    fn nothing_panics(prompt in "\\PC{0,60}", name in "\\PC{1,10}") {
        let _ = tools(&prompt, &[&name]);
    }
}
