//! A trend as a page: the page of the `html` reporter, with the trend as its only data.

use std::io::Write;

use serde::Serialize;

use super::Trend;
use crate::reporter::RenderError;
use crate::reporter::html::write_page;

#[derive(Serialize)]
struct Head<'a> {
    mcptest: &'static str,
    trend: &'a Trend,
}

pub(super) fn render(trend: &Trend, out: &mut dyn Write) -> Result<(), RenderError> {
    let head = Head {
        mcptest: env!("CARGO_PKG_VERSION"),
        trend,
    };
    write_page(out, |out| {
        serde_json::to_writer(out, &head).map_err(|error| RenderError::Write(error.into()))
    })
}
