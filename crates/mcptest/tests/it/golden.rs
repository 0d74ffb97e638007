//! Whole commands with their exact output.

#[test]
fn commands() {
    trycmd::TestCases::new()
        .env("CI", "true")
        .env("NO_COLOR", "1")
        .case("tests/golden/*.trycmd");
}
