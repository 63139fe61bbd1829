//! `config`: the settings in force.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Group, Local};
use crate::cli::LocalContext;
use crate::failure::Failure;
use crate::render::{Page, Render};

/// Show the settings in force and where they come from
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Config {}

/// Settings by name.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    pub file: String,
    pub exists: bool,
    pub state: String,
    pub data: String,
    pub runtime: String,
    pub settings: Vec<(String, String)>,
}

impl Render for Settings {
    fn render(&self, page: &mut Page) {
        page.line(format!("file: {}{}", self.file, if self.exists { "" } else { " (none: the defaults are used)" }));
        page.line(format!("state: {}", self.state));
        page.line(format!("adapters: {}", self.data));
        page.line(format!("runtime: {}", self.runtime));
        for (name, value) in &self.settings {
            page.line(format!("{name} = {value}"));
        }
    }
}

impl Local for Config {
    const NAME: &'static str = "config";
    const GROUP: Group = Group::Around;
    type Output = Settings;

    fn run(self, cx: &LocalContext) -> Result<Settings, Failure> {
        let config = crate::config::Config::load(&cx.paths)?;
        let seconds = |time: std::time::Duration| time.as_secs_f64().to_string();
        let mut settings = vec![
            ("timeouts.initialize_secs".to_string(), seconds(config.initialize())),
            ("timeouts.launch_secs".to_string(), seconds(config.launch())),
            ("timeouts.request_secs".to_string(), seconds(config.request()?)),
            ("timeouts.inspect_secs".to_string(), seconds(config.inspect())),
            ("timeouts.await_secs".to_string(), seconds(config.await_limit())),
            ("timeouts.build_secs".to_string(), seconds(config.build())),
            (
                "daemon.idle_timeout_minutes".to_string(),
                config.idle_timeout().map_or_else(|| "0".into(), |time| (time.as_secs_f64() / 60.0).to_string()),
            ),
            ("output.max_events".to_string(), config.max_events().to_string()),
            ("output.max_bytes_mb".to_string(), (config.max_bytes() / (1024 * 1024)).to_string()),
            ("record.redact".to_string(), config.redact().to_string()),
            (
                "record.max_age_days".to_string(),
                config.max_age().map_or_else(|| "0".into(), |time| (time.as_secs_f64() / 86_400.0).to_string()),
            ),
            ("record.max_size_mb".to_string(), (config.max_size().unwrap_or(0) / (1024 * 1024)).to_string()),
        ];
        let ignored = config.diff_ignore();
        if !ignored.is_empty() {
            settings.push(("diff.ignore".to_string(), ignored.join(" ")));
        }
        for (model, price) in config.prices() {
            let dollars = [price.input, price.output, price.cache_read, price.cache_write].map(|each| each.to_string());
            settings.push((format!("agent.prices.{model}"), dollars.join(" ")));
        }
        settings.extend(config.default_adapter().map(|name| ("defaults.adapter".to_string(), name)));
        for (name, adapter) in config.adapters() {
            settings.extend(adapter.path.map(|path| (format!("adapters.{name}.path"), path.display().to_string())));
            if !adapter.args.is_empty() {
                settings.push((format!("adapters.{name}.args"), adapter.args.join(" ")));
            }
        }
        let file = cx.paths.config_file();
        Ok(Settings {
            exists: file.is_file(),
            file: file.display().to_string(),
            state: cx.paths.state.display().to_string(),
            data: cx.paths.data.display().to_string(),
            runtime: cx.paths.runtime.display().to_string(),
            settings,
        })
    }
}
