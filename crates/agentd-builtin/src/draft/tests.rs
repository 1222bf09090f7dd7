use proptest::prelude::*;

use super::*;
use agentd_core::check::{self, MainSpecs};
use agentd_core::documents::{Documents, Source};
use agentd_core::layout::ChangeFile;
use agentd_core::span::Uncompared;
use agentd_core::text::Prose;

fn brief(description: &str) -> Brief {
    Brief {
        change: ChangeId::new("add-login").unwrap(),
        description: description.to_owned(),
        answers: Vec::new(),
        survey: Survey::default(),
        main_specs: Vec::new(),
        extras: Extras::default(),
    }
}

#[test]
fn a_spec_is_named_after_the_change_or_a_main_spec() {
    let named = |change: &str, main: &[&str]| {
        let mut brief = brief("x");
        brief.change = ChangeId::new(change).unwrap();
        brief.main_specs =
            main.iter().map(|id| (SpecId::new(id).unwrap(), RequirementId::new(3))).collect();
        brief.spec_id().to_string()
    };
    assert_eq!(named("add-login", &[]), "login");
    assert_eq!(named("add", &[]), "add");
    assert_eq!(named("add-login-lock", &["login", "lock", "auth"]), "login");
    assert_eq!(named("fix-user-export", &["user-export", "user"]), "user-export");
}

#[test]
fn figures_are_tried_at_their_limit_and_beyond() {
    let drafted =
        |description: &str| spec(&brief(description), &SpecId::new("login").unwrap()).to_string();
    let text = drafted("Lock the account after 5 attempts");
    assert!(text.contains("a count of 5 attempts"), "{text}");
    assert!(text.contains("a count of 4, which is less than 5 attempts"), "{text}");
    assert!(text.contains("The system MUST lock the account after 5 attempts."), "{text}");
    let text = drafted("Limit uploads to 10 MB");
    assert!(
        text.contains("a size of 10 MB") && text.contains("a size of more than 10 MB"),
        "{text}"
    );
    assert!(!text.contains("count of 10"), "{text}");
}

// R7
#[test]
fn one_case_is_tried_and_two_are_not_taken_for_one() {
    let tried = |description: &str| {
        let drafted = spec(&brief(description), &SpecId::new("login").unwrap());
        let scenario = &drafted["scenarios"][0];
        assert_eq!(drafted["scenarios"].as_array().unwrap().len(), 1, "{drafted}");
        [&scenario["when"], &scenario["then"]].map(|step| step.as_str().unwrap().to_owned())
    };
    for (description, when, then) in [
        ("When the disk is full, show an error", "the disk is full", "this holds: show an error"),
        ("Hide the sidebar when scrolling", "scrolling", "this holds: hide the sidebar"),
        (
            "The header should stay when scrolling",
            "scrolling",
            "this holds: The header should stay",
        ),
    ] {
        assert_eq!(tried(description), [when, then], "{description}");
    }
    for whole in [
        "The header should stay visible when scrolling, except on mobile",
        "Print \"done\" when finished, otherwise print \"failed\"",
        "When the disk is full, show an error, otherwise save the file",
        "Notify the owner if fewer than 3 backups exist",
    ] {
        assert_eq!(tried(whole)[0], format!("this is tried: {whole}"));
    }
}

// R7
#[test]
fn what_cannot_be_worded_stays_an_open_question() {
    let open = |description: &str| {
        let brief = brief(description);
        let drafted = spec(&brief, &brief.spec_id());
        let parsed =
            Spec { overview: Prose::new(drafted["overview"].as_str().unwrap()), ..Spec::default() };
        let questions = open_questions(description, &[]);
        let questions: Vec<String> = questions.iter().map(|question| plain(question)).collect();
        assert_eq!(left_open(&parsed), questions, "{description}");
        let why = proposal(&brief)["why"].as_str().unwrap().to_owned();
        assert_eq!(why.contains("Open questions"), !left_open(&parsed).is_empty(), "{why}");
        left_open(&parsed)
    };
    let figure = "which figure shows that it is 'fast': 'Make search fast'?";
    assert_eq!(open("Make search fast"), [figure]);
    assert_eq!(open("Make search faster").len(), 1);
    // People log in with Google; who logs in JSON is not said.
    assert_eq!(open("Log in with Google"), [""; 0]);
    assert_eq!(open("Log in JSON"), ["what must hold for 'Log in JSON'?"]);
    // A wish is not what is wrong today.
    let wish = "As a user, I want a PDF so that I can print it";
    assert_eq!(open(wish), [format!("what must hold for '{wish}'?")]);
    let fact = "must this hold, or is it what is wrong today: 'Users can reset it'?";
    assert_eq!(open("Users can reset it"), [fact]);
    assert_eq!(open("Add a TODO list"), ["'todo' in the description is left open"]);
    assert_eq!(open("Add login with email and password; lock after 5 attempts"), [""; 0]);
    assert_eq!(open("Fix the greeting: print it on stdout; exit with code 0"), [""; 0]);
    let asked = questions(&brief("x").change, "Make search fast");
    assert_eq!(asked["questions"].as_array().unwrap().len(), 4);
}

#[test]
fn a_spec_is_open_until_nothing_only_quotes() {
    let parse = |text: &str| agentd_core::document::spec::parse(text).value;
    let quoting = "## Requirements\n### R1: A\nThe system MUST do what the description asks for in these words: `a`.\n";
    assert_eq!(left_open(&parse(quoting)), ["R1 only quotes the description: what must hold?"]);
    assert_eq!(left_open(&parse("## Requirements\n### R1: A\nIt MUST return 1.\n")), [""; 0]);
}

#[test]
fn every_change_finds_files_by_their_names() {
    let mut brief = brief("Add login with email");
    let file = |path: &str, text: &str| {
        let kind = agentd_rank::Kind::Source;
        (agentd_rank::File { path: path.to_owned(), size: 0, mtime: 0, kind }, text.to_owned())
    };
    brief.survey = Survey::new([
        file("src/login.rs", "pub fn log_in() {}"),
        file("src/main.rs", "fn main() {}"),
    ]);
    let proposal = proposal(&brief);
    assert_eq!(proposal["impact"]["affected_code"], json!(["src/login.rs"]));
    assert!(proposal["why"].as_str().unwrap().contains("`src/login.rs` defines `log_in`"));
}

// R7
#[test]
fn answers_are_context_and_not_requirements() {
    let mut brief = brief("Make search fast");
    brief.answers = vec![Answered {
        topic: Line::new("Figure"),
        question: Prose::new("The description says \"fast\": which figure?"),
        answer: Prose::new("Within 1 second"),
        rationale: Prose::default(),
        place: Uncompared::default(),
    }];
    let drafted = spec(&brief, &brief.spec_id());
    assert_eq!(drafted["requirements"].as_array().unwrap().len(), 1);
    assert!(!drafted["requirements"].to_string().contains("1 second"), "{drafted}");
    assert!(!drafted["scenarios"].to_string().contains("1 second"), "{drafted}");
    let why = proposal(&brief)["why"].as_str().unwrap().to_owned();
    assert!(why.contains("which figure?\", the answer was: Within 1 second"), "{why}");
    let open = open_questions(&brief.description, &brief.answers);
    assert!(open[0].ends_with("The answer was: Within 1 second"), "{open:?}");
}

proptest! {
    /// Whatever a person writes: drafting never panics, and the texts fit into the tools.
    #[test]
    fn anything_can_be_drafted(text in "[\\PC\n]{0,300}") {
        let brief = brief(&text);
        let id = brief.spec_id();
        let drafted = spec(&brief, &id);
        prop_assert!(!drafted["requirements"].as_array().unwrap().is_empty());
        for requirement in drafted["requirements"].as_array().unwrap() {
            let words = requirement["description"].as_str().unwrap();
            prop_assert!(check::open_points(words).is_empty());
            prop_assert!(requirement["title"].as_str().unwrap().chars().count() <= 200);
        }
        prop_assert!(proposal(&brief)["why"].as_str().unwrap().len() <= 20_000);
    }

    /// Fixing a spec leaves nothing that could be fixed.
    #[test]
    fn fixing_twice_changes_nothing(text in "(### R[1-3]: [a-z]{0,4}\n([a-z ]{0,6}\n)?){0,3}## Acceptance Criteria\n(### Scenario: [ab]\n(- \\*\\*WHEN\\*\\* x\n)?){0,3}") {
        let text = format!("## Overview\nx\n## Requirements\n{text}");
        let parsed = agentd_core::document::spec::parse(&text).value;
        let (once, _) = fixed_spec(&parsed);
        let (_, notes) = fixed_spec(&once);
        prop_assert_eq!(notes, Vec::<String>::new());
    }
}

#[test]
fn a_fixed_spec_is_free_of_what_can_be_fixed() {
    let text = "---\nid: a\ntype: spec\ntitle: A\nversion: 1\n---\n# Specification: A\n## Overview\nx\n## Requirements\n### R1: Users log in\nUsers log in.\n### R2: empty\n## Acceptance Criteria\n### Scenario: S\n- **WHEN** x\n### Scenario: S\n- **THEN** y\n";
    let id = SpecId::new("a").unwrap();
    let parsed = agentd_core::document::spec::parse(text).value;
    let (fixed, notes) = fixed_spec(&parsed);
    assert!(notes.len() >= 5, "{notes:?}");
    let rendered = agentd_core::document::spec::render(&fixed);
    let file = ChangeFile::Spec(id);
    let texts = [(file.clone(), Source::Text(rendered))];
    let documents = Documents::read(ChangeId::new("c").unwrap(), texts);
    let reports = documents.findings(&MainSpecs::new(), &Extras::default());
    let found = check::of_file(&reports, &file);
    let bad: Vec<_> =
        found.iter().filter(|d| d.severity() != agentd_core::diagnostic::Severity::Low).collect();
    assert!(bad.is_empty(), "{bad:?}");
}

/// What is drafted from a description: its requirements, what is asked, and the scenarios that say
/// more than that the requirement holds.
fn drafted(description: &str) -> String {
    let brief = brief(description);
    let spec = spec(&brief, &brief.spec_id());
    let list = |key: &str| spec[key].as_array().unwrap().clone();
    let mut lines = Vec::new();
    for requirement in list("requirements") {
        let text = requirement["description"].as_str().unwrap();
        let text = text.split("\n\n").next().unwrap();
        if !text.contains(QUOTES) {
            lines.push(text.to_owned());
        }
    }
    lines.extend(open_questions(description, &[]).iter().map(|question| format!("? {question}")));
    for scenario in list("scenarios") {
        let [given, when, then] =
            ["given", "when", "then"].map(|key| scenario[key].as_str().unwrap());
        let mut steps = Vec::new();
        steps.extend(
            (given != "a project in which this change is built").then(|| format!("GIVEN {given}")),
        );
        steps.extend((!when.starts_with("this is tried: ")).then(|| format!("WHEN {when}")));
        let seen = ", and the person who tried it can see that";
        steps.extend(
            (!then.starts_with("it does what it says"))
                .then(|| format!("THEN {}", then.replace(seen, ""))),
        );
        lines.extend((!steps.is_empty()).then(|| format!("  {}", steps.join(" "))));
    }
    lines.join("\n")
}

// R7: nothing invented, no noun lost, no limit changed, no sentence broken
#[test]
fn real_descriptions_are_drafted_or_asked_about() {
    let mut wrong = String::new();
    let blocks: Vec<&str> = include_str!("descriptions.txt").split("\n\n").collect();
    assert!(blocks.len() > 120, "{}", blocks.len());
    for block in blocks {
        let (description, expected) = block.trim().split_once('\n').unwrap();
        let found = drafted(description);
        if found != expected {
            wrong.push_str(&format!("{description}\n{found}\n\n"));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// What a project wants and nobody has said is asked, and not made up.
#[test]
fn scenarios_that_a_project_wants_are_not_made_up() {
    let mut brief = brief("add login with email");
    brief.extras.scenario_min_count = 3;
    let spec = spec(&brief, &brief.spec_id());
    let names: Vec<&str> =
        spec["scenarios"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Add login with email", "Not said yet (2 of 3)", "Not said yet (3 of 3)"]);
    let overview = Prose::new(spec["overview"].as_str().unwrap());
    assert_eq!(
        left_open(&Spec { overview, ..Spec::default() }),
        ["the project wants 3 scenarios, and the description says 1: which others must hold?"]
    );
}
