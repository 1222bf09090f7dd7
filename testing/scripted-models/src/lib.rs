//! A model server on loopback that answers the real agent CLIs from a script.
//!
//! agentd drives programs it does not control. To test that for real, without
//! a network and without paying, those programs need a model that says exactly
//! what the test wants, including the ways in which providers fail. This crate
//! is that model, for the three wire formats that the CLIs speak:
//!
//! - Gemini `streamGenerateContent` and `generateContent` (gemini),
//! - `OpenAI` Responses (codex),
//! - Anthropic Messages (claude).
//!
//! ```
//! use scripted_models::{Reply, Rule, Script, ScriptedModels};
//!
//! let models = ScriptedModels::start(
//!     Script::new()
//!         .rule(Rule::new().step("plan").times(1).reply(Reply::status(429).header("retry-after", "1")))
//!         .rule(Rule::new().step("plan").reply(Reply::text("planned ${change}"))),
//! )?;
//! assert!(models.url().starts_with("http://127.0.0.1:"));
//! assert!(models.requests().is_empty());
//! # std::io::Result::Ok(())
//! ```
//!
//! It does not check requests as a provider would, and its usage numbers are
//! whatever the script says.

mod answer;
mod anthropic;
mod choice;
mod gemini;
mod http;
mod openai;
mod pattern;
mod request;
mod script;
mod server;
mod tools;
mod wire;

pub use pattern::Pattern;
pub use request::{Message, ModelRequest, Offered, RequestKind, Role};
pub use script::{
    Fault, Provider, Reply, RequestFilter, Rule, Script, ScriptError, StatusFault, Stop, ToolCall,
    Usage,
};
pub use server::{Recorded, ScriptedModels};
