//! Configurations of MCP clients, in every format.

use mcptest_config::{FORMATS, TemplateValues, read};

use crate::property::assert_located;

/// Runs one input.
pub(super) fn run(input: &[u8]) {
    for format in FORMATS {
        for name in format.files {
            match read(name, input) {
                Err(problems) => assert_located(&problems, name),
                Ok(config) => {
                    let values = TemplateValues {
                        env: &|name| Some(format!("value of {name}")),
                        project_folder: "/work",
                    };
                    for server in &config.servers {
                        assert!(!server.name.is_empty(), "a server without a name");
                        for template in server.target.templates() {
                            let _ = template.resolve(&values);
                        }
                    }
                }
            }
        }
    }
}
