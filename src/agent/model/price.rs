//! What model calls cost: the vendors' list prices, and those that the user gives.
//!
//! Prices change, and this table does not by itself: it has its date. A model that is not in it has no cost, rather than
//! that of another.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::agent::gate::Usage;

/// When the prices below were last compared with what vendors ask.
pub const DATE: &str = "2026-11-16";

/// What a million tokens cost, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

/// One that writes to the cache for a quarter more than it reads for, as Anthropic has it (for five minutes).
const fn written(input: f64, output: f64, cache_read: f64) -> Price {
    Price { input, output, cache_read, cache_write: input * 1.25 }
}

/// One whose cache is filled at no cost of its own.
const fn free(input: f64, output: f64, cache_read: f64) -> Price {
    Price { input, output, cache_read, cache_write: input }
}

/// Standard list prices; for prompts of a length that costs no more. A name is the model's without its date.
const PRICES: &[(&str, Price)] = &[
    ("claude-opus-5", written(5.0, 25.0, 0.5)),
    ("claude-opus-4-8", written(5.0, 25.0, 0.5)),
    ("claude-opus-4-7", written(5.0, 25.0, 0.5)),
    ("claude-opus-4-6", written(5.0, 25.0, 0.5)),
    ("claude-opus-4-5", written(5.0, 25.0, 0.5)),
    ("claude-opus-4-1", written(15.0, 75.0, 1.5)),
    ("claude-opus-4", written(15.0, 75.0, 1.5)),
    ("claude-sonnet-4-6", written(3.0, 15.0, 0.3)),
    ("claude-sonnet-4-5", written(3.0, 15.0, 0.3)),
    ("claude-sonnet-4", written(3.0, 15.0, 0.3)),
    ("claude-3-7-sonnet", written(3.0, 15.0, 0.3)),
    ("claude-haiku-4-5", written(1.0, 5.0, 0.1)),
    ("claude-3-5-haiku", written(0.8, 4.0, 0.08)),
    ("gpt-5.1", free(1.25, 10.0, 0.125)),
    ("gpt-5.1-codex", free(1.25, 10.0, 0.125)),
    ("gpt-5", free(1.25, 10.0, 0.125)),
    ("gpt-5-codex", free(1.25, 10.0, 0.125)),
    ("gpt-5-mini", free(0.25, 2.0, 0.025)),
    ("gpt-5-nano", free(0.05, 0.4, 0.005)),
    ("gpt-4.1", free(2.0, 8.0, 0.5)),
    ("gpt-4.1-mini", free(0.4, 1.6, 0.1)),
    ("gpt-4.1-nano", free(0.1, 0.4, 0.025)),
    ("gpt-4o", free(2.5, 10.0, 1.25)),
    ("gpt-4o-mini", free(0.15, 0.6, 0.075)),
    ("o4-mini", free(1.1, 4.4, 0.275)),
    ("gemini-2.5-pro", free(1.25, 10.0, 0.125)),
    ("gemini-2.5-flash", free(0.3, 2.5, 0.03)),
    ("gemini-2.5-flash-lite", free(0.1, 0.4, 0.01)),
];

/// The price of a model: the user's own for it, else the vendor's; None where neither is known. A model may have a date
/// after its name (`-20250929`, `-2025-04-14`, `@20250929`), `-latest`, or a vendor's name before it (`anthropic/`).
#[must_use]
pub fn of(model: &str, own: &[(String, Price)]) -> Option<Price> {
    if let Some((_, price)) = own.iter().find(|(name, _)| name == model) {
        return Some(*price);
    }
    let bare = model.rsplit('/').next().unwrap_or(model);
    let is = |name: &str| bare.strip_prefix(name).is_some_and(is_date);
    let ours = own.iter().find(|(name, _)| is(name)).map(|(_, price)| *price);
    ours.or_else(|| PRICES.iter().find(|(name, _)| is(name)).map(|(_, price)| *price))
}

/// Whether what follows a model's name says only which release of it.
fn is_date(rest: &str) -> bool {
    // `[1m]` is Claude Code's mark for a long context.
    let rest = rest.strip_suffix("[1m]").unwrap_or(rest);
    let Some(date) = rest.strip_prefix(['-', '@']) else { return rest.is_empty() };
    let digits = date.bytes().filter(u8::is_ascii_digit).count();
    date == "latest" || (digits == 8 && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'))
}

/// What a call cost, in US dollars; None where the model's price is not known.
#[must_use]
pub fn cost(model: &str, usage: &Usage, own: &[(String, Price)]) -> Option<f64> {
    let price = of(model, own)?;
    let parts = [
        (usage.input, price.input),
        (usage.output, price.output),
        (usage.cache_read, price.cache_read),
        (usage.cache_write, price.cache_write),
    ];
    Some(parts.iter().map(|(tokens, price)| *tokens as f64 * price / 1_000_000.0).sum())
}

/// Reads an entry of `[agent.prices]`: `"MODEL" = { input = 3, output = 15, cache_read = 0.3, cache_write = 3.75 }`. What is
/// not said of the cache costs as input does. An error says what is wrong with it.
pub fn read(entry: &Json) -> Result<Price, String> {
    let members = entry.as_object().ok_or("it must be a table such as { input = 3, output = 15 }")?;
    let known = ["input", "output", "cache_read", "cache_write"];
    if let Some(other) = members.keys().find(|member| !known.contains(&member.as_str())) {
        return Err(format!("there is no `{other}`; known: {}", known.join(", ")));
    }
    let read = |member: &str| match members.get(member) {
        None => Ok(None),
        Some(value) => {
            let number = value.as_f64().filter(|number| number.is_finite() && *number >= 0.0);
            number.map(Some).ok_or_else(|| format!("`{member}` must be dollars per million tokens"))
        }
    };
    let input = read("input")?.ok_or("`input` is missing")?;
    let output = read("output")?.ok_or("`output` is missing")?;
    let (cache_read, cache_write) = (read("cache_read")?.unwrap_or(input), read("cache_write")?.unwrap_or(input));
    Ok(Price { input, output, cache_read, cache_write })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn models_go_by_their_names_without_dates() {
        for model in [
            "claude-sonnet-4-5",
            "claude-sonnet-4-5-20250929",
            "anthropic/claude-sonnet-4-5@20250929",
            "claude-sonnet-4-5[1m]",
        ] {
            assert_eq!(of(model, &[]).map(|price| price.input), Some(3.0), "{model}");
        }
        assert_eq!(of("gpt-4.1-mini-2025-04-14", &[]).map(|price| price.output), Some(1.6));
        assert_eq!(of("claude-opus-4-20250514", &[]).map(|price| price.input), Some(15.0));
        // Another version is another model, whatever it costs.
        for model in ["claude-opus-4-99", "gpt-5.9", "gpt-5-codex-max", "", "llama", "claude-opus"] {
            assert_eq!(of(model, &[]), None, "{model}");
        }
    }

    #[test]
    fn a_call_costs_what_its_tokens_do() {
        let usage = Usage { input: 1_000_000, output: 100_000, cache_read: 2_000_000, cache_write: 400_000 };
        let cost = |model: &str, own: &[(String, Price)]| super::cost(model, &usage, own);
        let close = |cost: Option<f64>, wanted: f64| cost.is_some_and(|cost| (cost - wanted).abs() < 1e-9);
        assert!(close(cost("claude-sonnet-4-5", &[]), 3.0 + 1.5 + 0.6 + 1.5));
        assert_eq!(cost("none", &[]), None);
        let entries =
            [("none", json!({"input": 1, "output": 2.5})), ("claude-sonnet-4-5", json!({"input": 0, "output": 0}))];
        let own = entries.map(|(model, entry)| (model.to_string(), read(&entry).unwrap()));
        assert!(close(cost("none", &own), 1.0 + 0.25 + 2.0 + 0.4));
        assert!(close(cost("claude-sonnet-4-5-20250929", &own), 0.0));
    }

    #[test]
    fn wrong_prices_are_told() {
        let wrong = |entry: &Json| read(entry).unwrap_err();
        assert_eq!(wrong(&json!(3)), "it must be a table such as { input = 3, output = 15 }");
        assert_eq!(wrong(&json!({"input": 3})), "`output` is missing");
        assert_eq!(wrong(&json!({"input": -3, "output": 1})), "`input` must be dollars per million tokens");
        assert_eq!(wrong(&json!({"in": 3})), "there is no `in`; known: input, output, cache_read, cache_write");
    }
}
