use super::*;

fn error(text: &str) -> String {
    let error = Config::parse(text).unwrap_err();
    format!("{error} {}", error.hint.clone().unwrap_or_default())
}

#[test]
fn nothing_at_all_is_the_default() {
    assert_eq!(Config::parse("").unwrap(), Config::default());
    assert_eq!(Config::parse(TEMPLATE).unwrap(), Config::default());
    // C1, C9, C11, C12, C13, C27
    let contract = "[workflow]\nhuman_in_loop = true\ngeneration = \"sequential\"\n\
        self_review_iterations = 1\nplanning_iterations = 2\nformat_iterations = 2\n\
        implementation_iterations = 2\nscript_retries = 2\nretry_delay_secs = 5\n\
        accept_minor = false\nrechallenge = \"fresh\"\n";
    assert_eq!(Config::parse(contract).unwrap(), Config::default());
}

/// Lesson 11: the sample is real. Uncommented, it still says the defaults, and the examples work.
#[test]
fn the_template_shows_every_default_as_it_is() {
    let uncommented = |prefixes: &[&str]| {
        let line = |line: &'static str| {
            let rest = prefixes.iter().find_map(|prefix| line.strip_prefix(prefix));
            match rest {
                Some(rest) if rest.starts_with("e.g. ") => line,
                Some(rest) if rest.starts_with('[') || rest.contains(" = ") => rest,
                _ => line,
            }
        };
        let lines: Vec<&str> = TEMPLATE.lines().map(line).collect();
        Config::parse(&lines.join("\n")).unwrap()
    };
    let mut config = uncommented(&["# "]);
    assert!(config.roles_are_written);
    config.roles_are_written = false;
    // What stands there for a name or a place that nobody has set.
    assert_eq!(config.gemini.command.take().as_deref(), Some("gemini"));
    assert_eq!(config.gemini.resume.take(), Some(Resume::Index));
    assert_eq!(config.gemini.transport.take(), Some(crate::agent::Transport::Cli));
    assert_eq!(config, Config::default());
    let examples = uncommented(&["# e.g. ", "# "]);
    assert_eq!(examples.implementation.test_command.as_deref(), Some("cargo test"));
    assert_eq!((examples.budget.max_cost_usd, examples.prices.len()), (Some(5.0), 1));
    for section in [
        "project",
        "workflow",
        "rules",
        "roles",
        "gemini",
        "gemini.models",
        "prices",
        "budget",
        "git",
        "implementation",
        "validation",
    ] {
        assert!(TEMPLATE.contains(&format!("[{section}")), "{section}");
    }
}

#[test]
fn a_misspelt_key_is_an_error_that_names_the_right_one() {
    assert_eq!(
        error("[workflow]\nhuman_in_the_loop = true\n"),
        "unknown key `human_in_the_loop` (line 2, column 1) did you mean `human_in_loop`?"
    );
    assert!(error("[wrokflow]\n").contains("did you mean `workflow`?"));
    assert_eq!(
        error("[gemini]\ntimeout = 3\n"),
        "unknown key `timeout` (line 2, column 1) did you mean `timeout_secs`?"
    );
    assert!(error("[roles]\nplanner = \"gemnii\"\n").contains("did you mean `gemini`?"));
    assert!(
        error("[budget]\nzzz = 1\n")
            .contains("known here: max_cost_usd, max_tokens, ask_above_usd")
    );
    assert!(error("[gemini.models]\nhuge = \"x\"\n").contains("unknown value `huge`"));
}

#[test]
fn values_are_checked() {
    assert!(error("[workflow]\nself_review_iterations = 6\n").contains("at most 5"));
    assert!(Config::parse("[workflow]\nself_review_iterations = 5\n").is_ok());
    assert!(error("[workflow]\nself_review_iterations = \"x\"\n").contains("line 2"));
    for bytes in ["0", "8191", "1048577"] {
        let text = format!("[workflow]\ncontext_bytes = {bytes}\n");
        assert!(error(&text).contains("context_bytes is from 8192 to 1048576 (line 2"));
    }
    assert!(Config::parse("[workflow]\ncontext_bytes = 8192\n").is_ok());
    assert!(error("[validation]\nscenario_pattern = '('\n").contains("not a pattern"));
    assert!(error("[codex]\nresume = \"uuid\"\n").contains("for [gemini] only"));
    assert!(error("[prices.x]\ninput = -1.0\noutput = 1.0\n").contains("positive"));
    for limit in ["max_cost_usd = nan", "ask_above_usd = nan", "ask_above_usd = -1.0"] {
        let error = error(&format!("[budget]\n{limit}\n"));
        assert!(error.contains("_usd is a positive number (line 2"), "{error}");
    }
    assert!(Config::parse("[budget]\nask_above_usd = 0\n").is_ok());
    assert!(error("a = [\n").contains("line "));
    // `gemini -m --approval-mode=yolo` would be two flags.
    for model in ["gemini.models]\nlow = '-y'", "claude.models]\nlow = { effort = '--x' }"] {
        assert!(error(&format!("[{model}\n")).contains("begins with a hyphen (line 2"));
    }
}

#[test]
fn models_have_a_short_and_a_long_form() {
    let text = "[codex.models]\nlow = \"a\"\ncritical = { model = \"b\", effort = \"high\" }\n";
    let models = Config::parse(text).unwrap().codex.models;
    assert_eq!(models[&Complexity::Low].model.as_deref(), Some("a"));
    assert_eq!(models[&Complexity::Low].effort, None);
    assert_eq!(models[&Complexity::Critical].effort.as_deref(), Some("high"));
}

// contract T6
#[test]
fn a_mistake_elsewhere_does_not_turn_signing_off() {
    let read = |text: &str| Config::parse_sign(text).map_err(|error| error.message);
    assert_eq!(read(""), Ok(Sign::None));
    assert_eq!(read(TEMPLATE), Ok(Sign::None));
    assert_eq!(read("[policy]\nsign = \"none\"\n"), Ok(Sign::None));
    let signed = "[nope]\nx = 1\n[policy]\nindependent = 3\nsign = \"ssh\"\n";
    assert!(Config::parse(signed).is_err());
    assert_eq!(read(signed), Ok(Sign::Ssh));
    assert_eq!(read("[policy]\nsign = \"gpg\"\n"), Err("unknown value `gpg`".to_owned()));
    assert!(read("[policy\nsign = \"ssh\"\n").is_err(), "nobody knows");
}

// contract R6
#[test]
fn rules_are_set_by_code_or_name() {
    let rules = |text: &str| Config::parse(&format!("[rules]\n{text}\n")).map(|c| c.extras().rules);
    let set: Vec<_> =
        rules("Q004 = \"off\"\nt010 = 'high'\nvague-word = 'low'").unwrap().iter().collect();
    assert_eq!(set, [("Q001", Weight::Low), ("Q004", Weight::Off), ("T010", Weight::High)]);
    assert!(rules("S003 = 'high'").is_ok(), "as it is anyway");
    for (text, expected) in [
        ("Q099 = 'off'", "there is no rule `Q099` (line 2, column 1) did you mean `Q001`?"),
        (
            "vague-wrods = 'off'",
            "there is no rule `vague-wrods` (line 2, column 1) did you mean `vague-word`?",
        ),
        ("\"\" = 'off'", "there is no rule `` (line 1, column 1) `agentd explain` lists them"),
        ("Q001 = 'of'", "unknown value `of` (line 2, column 8) did you mean `off`?"),
        (
            "Q001 = 'off'\nq001 = 'low'",
            "the rule Q001 is set twice (line 3, column 1) delete one of the two lines",
        ),
        (
            "F003 = 'off'",
            "the rule F003 (frontmatter-unclosed) is always HIGH: agentd could not work with a document that breaks it (line 2, column 1) delete the line; `agentd explain F003` says what the rule is for",
        ),
        (
            "R004 = 'high'",
            "the rule R004 (foreign-review) is always MEDIUM: it is about what was proven, which a project cannot change (line 2, column 1) delete the line; `agentd explain R004` says what the rule is for",
        ),
    ] {
        assert_eq!(error(&format!("[rules]\n{text}\n")), expected);
    }
}

// contract R5
#[test]
fn the_language_is_a_tag() {
    let config = Config::parse("[project]\nlanguage = \"zh-TW\"\n").unwrap();
    assert_eq!(config.project.language.map(|tag| tag.to_string()).as_deref(), Some("zh-TW"));
    assert_eq!(
        error("[project]\nlanguage = \"Chinese, please\"\n"),
        "language is a BCP 47 tag, such as \"zh-TW\", \"ja\" or \"pt-BR\" (line 2, column 12) "
    );
    assert!(error("[project]\nlangauge = \"de\"\n").contains("did you mean `language`?"));
}
