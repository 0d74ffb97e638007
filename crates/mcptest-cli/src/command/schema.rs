//! `mcptest schema`.

use mcptest_report::ExitCode;
use mcptest_trace::schema::trace_schema;

use crate::cli::{SchemaArgs, SchemaOf};
use crate::gates::Gates;
use crate::output::Output;

pub fn schema(args: &SchemaArgs, gates: Gates, output: &Output) -> ExitCode {
    let schema = match args.of {
        SchemaOf::Suite => mcptest_suite::suite_schema(gates),
        SchemaOf::Mock => mcptest_mock::manifest_schema(),
        SchemaOf::Report => mcptest_report::report_schema(),
        SchemaOf::Comparison => mcptest_report::comparison_schema(),
        SchemaOf::Trend => mcptest_report::trend_schema(),
        SchemaOf::ToolBench => mcptest_catalog::tool_bench::spec_schema(),
        SchemaOf::Trace => trace_schema(),
        SchemaOf::ScoreRow => mcptest_runner::score_row_schema(),
    };
    output.result(&format!("{schema:#}\n"));
    ExitCode::Passed
}
