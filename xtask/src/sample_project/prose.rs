//! What the sample project's documents say: a web service's rules, ten of them,
//! for twenty kinds of things.

/// A kind of thing that the service stores.
pub(super) struct Subject {
    pub(super) one: &'static str,
    pub(super) a: &'static str,
    pub(super) many: &'static str,
}

pub(super) struct Requirement {
    pub(super) title: String,
    pub(super) priority: &'static str,
    pub(super) text: String,
    /// One that goes well, one that does not.
    pub(super) scenarios: [Scenario; 2],
}

pub(super) struct Scenario {
    pub(super) name: String,
    /// `GIVEN`, `WHEN`, `THEN`, `AND`, each with its text.
    pub(super) steps: Vec<(&'static str, String)>,
}

pub(super) const CONFIG: &str = "\
# Written by `cargo xtask sample-project`.
[workflow]
human_in_loop = true

[roles]
planner = \"gemini\"
challenger = \"codex\"
implementer = \"claude\"
reviewer = \"codex\"

[implementation]
test_command = \"cargo test\"
";

pub(super) const PROJECT: &str = "\
# Project context

An order service for shops: an HTTP interface in Rust over PostgreSQL. Routes
live in `src/<kind>/`, tests in `tests/`. Each kind of thing has a store, rules
that decide on requests, and routes that call them. Times are in UTC; ids are
UUIDs; a refusal names the field that caused it.
";

const fn named(one: &'static str, a: &'static str, many: &'static str) -> Subject {
    Subject { one, a, many }
}

const SUBJECTS: [Subject; 20] = [
    named("invoice", "an invoice", "invoices"),
    named("webhook", "a webhook", "webhooks"),
    named("session", "a session", "sessions"),
    named("refund", "a refund", "refunds"),
    named("shipment", "a shipment", "shipments"),
    named("coupon", "a coupon", "coupons"),
    named("account", "an account", "accounts"),
    named("address", "an address", "addresses"),
    named("payment", "a payment", "payments"),
    named("order", "an order", "orders"),
    named("product", "a product", "products"),
    named("category", "a category", "categories"),
    named("review", "a review", "reviews"),
    named("warehouse", "a warehouse", "warehouses"),
    named("supplier", "a supplier", "suppliers"),
    named("contract", "a contract", "contracts"),
    named("template", "a template", "templates"),
    named("report", "a report", "reports"),
    named("device", "a device", "devices"),
    named("token", "a token", "tokens"),
];

pub(super) fn subject(number: usize) -> &'static Subject {
    &SUBJECTS[number % SUBJECTS.len()]
}

/// `count` different requirements; which ones depends on `number`.
pub(super) fn requirements(subject: &Subject, number: usize, count: usize) -> Vec<Requirement> {
    let rules = RULES.iter().cycle().skip(number % RULES.len());
    rules.take(count.min(RULES.len())).map(|rule| rule.about(subject)).collect()
}

pub(super) fn overview(subject: &Subject) -> String {
    fill(
        "The service stores {many} and serves them over HTTP to the shops that own them. This \
         specification says which requests for {many} it accepts, what it answers, and what it \
         keeps when a request is refused. It says nothing about how {a} is drawn on a screen.",
        subject,
    )
}

pub(super) fn why(subject: &Subject) -> String {
    fill(
        "In the last 90 days 214 tickets asked why a request for {many} was refused or \
         lost. The rules lived in 3 routes that disagreed. One specification lets a shop predict \
         the answer to each request, and lets us test it.",
        subject,
    )
}

fn fill(text: &str, subject: &Subject) -> String {
    text.replace("{one}", subject.one).replace("{a}", subject.a).replace("{many}", subject.many)
}

/// The text with its first letter in upper case.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// A requirement with places for a subject.
struct Rule {
    title: &'static str,
    priority: &'static str,
    text: &'static str,
    /// Each scenario: name, then GIVEN, WHEN, THEN, AND.
    scenarios: [[&'static str; 5]; 2],
}

impl Rule {
    fn about(&self, subject: &Subject) -> Requirement {
        let scenario = |[name, given, when, then, and]: [&str; 5]| Scenario {
            name: sentence(&fill(name, subject)),
            steps: [("GIVEN", given), ("WHEN", when), ("THEN", then), ("AND", and)]
                .map(|(keyword, text)| (keyword, fill(text, subject)))
                .to_vec(),
        };
        Requirement {
            title: fill(self.title, subject),
            priority: self.priority,
            text: fill(self.text, subject),
            scenarios: self.scenarios.map(scenario),
        }
    }
}

const RULES: [Rule; 10] = [
    Rule {
        title: "Each of the {many} has an owner",
        priority: "high",
        text: "The service MUST answer a request to create {a} without an owner with status 422, \
               and MUST name the field `owner` in the body. It writes 0 rows to `{many}` then.",
        scenarios: [
            [
                "{a} with an owner is created",
                "a shop that is signed in with the role `editor`",
                "the shop posts {a} with `owner` set to its own id",
                "the service answers with status 201",
                "the body holds the id of the new {one}",
            ],
            [
                "{a} without an owner is refused",
                "a shop that is signed in with the role `editor`",
                "the shop posts {a} without the field `owner`",
                "the service answers with status 422 and names the field `owner`",
                "the table `{many}` holds no row that it did not hold before",
            ],
        ],
    },
    Rule {
        title: "The list of {many} comes in pages",
        priority: "medium",
        text: "The service MUST return at most 50 {many} per page, ordered by the time of their \
               creation, and MUST return a cursor exactly when a further page exists.",
        scenarios: [
            [
                "the first page of {many} is full",
                "a shop with 120 {many}",
                "the shop asks for the list without a cursor",
                "the service answers with the 50 oldest {many}",
                "the body holds a cursor for the second page",
            ],
            [
                "a cursor for {many} that was altered is refused",
                "a shop that holds a cursor for its second page",
                "the shop sends the cursor with 1 character changed",
                "the service answers with status 400 and the code `bad_cursor`",
                "the body holds no {many}",
            ],
        ],
    },
    Rule {
        title: "Edits of {many} leave an audit entry",
        priority: "high",
        text: "The service MUST write 1 audit entry for each edit of {a} in the same transaction \
               as the edit, with the account, the names of the fields and the time in UTC.",
        scenarios: [
            [
                "an edit of {a} is recorded",
                "{a} whose field `note` is empty",
                "its owner sets the field `note`",
                "the audit log holds 1 entry more, which names `note` and the owner",
                "the service answers with status 200",
            ],
            [
                "an edit of {a} fails with its audit entry",
                "an audit log that refuses to write",
                "its owner sets the field `note` of {a}",
                "the service answers with status 503",
                "the field `note` keeps the value it had",
            ],
        ],
    },
    Rule {
        title: "Unconfirmed {many} expire",
        priority: "medium",
        text: "The service MUST delete {a} that its owner has not confirmed within 24 hours of its \
               creation, and MUST do so at most 15 minutes after that time.",
        scenarios: [
            [
                "a confirmed {one} stays",
                "{a} that was created 23 hours ago",
                "its owner confirms it",
                "the {one} is still there 48 hours after its creation",
                "its state is `confirmed`",
            ],
            [
                "confirming {a} too late is refused",
                "{a} that was created 25 hours ago and not confirmed",
                "its owner confirms it",
                "the service answers with status 410",
                "the {one} is not created again",
            ],
        ],
    },
    Rule {
        title: "Two writers of {a} do not overwrite each other",
        priority: "high",
        text: "The service MUST refuse an edit of {a} whose `If-Match` header does not hold the \
               current version with status 412, and MUST add 1 to the version at each edit.",
        scenarios: [
            [
                "an edit of the current {one} is taken",
                "{a} at version 7",
                "its owner sends an edit with `If-Match: 7`",
                "the service answers with status 200",
                "the {one} is at version 8",
            ],
            [
                "an edit of an outdated {one} is refused",
                "{a} at version 8",
                "its owner sends an edit with `If-Match: 7`",
                "the service answers with status 412 and the current version",
                "the {one} stays at version 8 with its fields unchanged",
            ],
        ],
    },
    Rule {
        title: "Requests for {many} have a rate limit",
        priority: "medium",
        text: "The service MUST answer the first 100 requests for {many} that an account sends \
               within 60 seconds, and MUST refuse further ones in that time with status 429.",
        scenarios: [
            [
                "an account within the limit for {many} is served",
                "an account that sent 99 requests for {many} within 60 seconds",
                "the account sends 1 more request",
                "the service answers with status 200",
                "the header `RateLimit-Remaining` is 0",
            ],
            [
                "an account over the limit for {many} is refused",
                "an account that sent 100 requests for {many} within 60 seconds",
                "the account sends 1 more request",
                "the service answers with status 429",
                "the header `Retry-After` names the seconds until the next request is served",
            ],
        ],
    },
    Rule {
        title: "Reading {a} has a time limit",
        priority: "high",
        text: "The service MUST answer 95 % of the requests for {a} within 200 ms at a load of 50 \
               requests per second, and MUST give up on the database after 1 second.",
        scenarios: [
            [
                "reading {many} under load keeps the limit",
                "a store of 100000 {many} and a load of 50 requests per second for 5 minutes",
                "the durations of the answers are sorted",
                "the duration at 95 % is at most 200 ms",
                "no answer has a status of 500 or above",
            ],
            [
                "reading {a} from a database that hangs fails",
                "a database that does not answer",
                "a shop asks for {a}",
                "the service answers with status 504 within 1.2 seconds",
                "the connection is returned to the pool",
            ],
        ],
    },
    Rule {
        title: "Exports of {many} have a size limit",
        priority: "low",
        text: "The service MUST export up to 10000 {many} as CSV in UTF-8 with 1 header row, and \
               MUST refuse an export of more with status 413.",
        scenarios: [
            [
                "an export of {many} within the limit is complete",
                "a shop with 10000 {many}",
                "the shop asks for an export",
                "the answer has 10001 lines",
                "each line has the number of fields of the header row",
            ],
            [
                "an export of {many} over the limit is refused",
                "a shop with 10001 {many}",
                "the shop asks for an export",
                "the service answers with status 413 and names the limit",
                "no file is left in the export directory",
            ],
        ],
    },
    Rule {
        title: "Deleted {many} can be restored",
        priority: "medium",
        text: "The service MUST restore {a} with the fields it had when its owner asks for that \
               within 30 days of the deletion, and MUST erase it after 30 days.",
        scenarios: [
            [
                "{a} deleted 29 days ago is restored",
                "{a} that its owner deleted 29 days ago",
                "its owner restores it",
                "the service answers with status 200",
                "the fields are those at the time of the deletion",
            ],
            [
                "{a} deleted 31 days ago is gone",
                "{a} that its owner deleted 31 days ago",
                "its owner restores it",
                "the service answers with status 404",
                "the table `{many}` holds no row with its id",
            ],
        ],
    },
    Rule {
        title: "Subscribers learn of new {many}",
        priority: "low",
        text: "The service MUST post each new {one} to each subscriber within 5 seconds, and MUST \
               try 3 times, 10 seconds apart, before it marks the delivery as `failed`.",
        scenarios: [
            [
                "a subscriber receives a new {one}",
                "a subscriber that answers with status 204",
                "a shop creates {a}",
                "the subscriber receives 1 request within 5 seconds",
                "the delivery is marked as `delivered`",
            ],
            [
                "a subscriber to {many} that refuses is given up",
                "a subscriber that answers with status 500",
                "a shop creates {a}",
                "the subscriber receives 3 requests within 30 seconds",
                "the delivery is marked as `failed`",
            ],
        ],
    },
];
