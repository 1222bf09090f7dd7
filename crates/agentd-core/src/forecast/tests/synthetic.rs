//! A back-test on ledgers that are made up: no ledger of a real project is in this repository. They
//! vary in everything that the forecast does not know: how large the project makes every call, how
//! large a change is, how much of the input is cached, how calls scatter, how often they fail and
//! are made again, how many specs, layers and rounds there are.

use super::*;

/// Random numbers that are the same in each run (splitmix64).
struct Dice(u64);

impl Dice {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        spread::number((z ^ (z >> 31)) >> 11) / spread::number(1 << 53)
    }

    /// A factor whose logarithm is normal.
    fn factor(&mut self, deviation: f64) -> f64 {
        let (u, v) = (1.0 - self.uniform(), self.uniform());
        let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
        (deviation * normal).exp()
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// How many successes there are before the first failure, up to a limit.
    fn rounds(&mut self, probability: f64, most: u32) -> u32 {
        (0..most).take_while(|_| self.chance(probability)).count().try_into().unwrap()
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(spread::whole(self.uniform() * 1e6)).unwrap() % of.len()]
    }
}

/// How a project differs from what is built in.
struct MadeUp {
    dice: Dice,
    size: f64,
    pace: f64,
    cached: f64,
    trouble: f64,
}

impl MadeUp {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let (size, pace) = (dice.factor(0.6), dice.factor(0.4));
        let (cached, trouble) = (0.3 + 0.6 * dice.uniform(), 0.15 + 0.4 * dice.uniform());
        Self { dice, size, pace, cached, trouble }
    }

    fn change(&mut self) -> PastChange {
        let complexity = self.dice.pick(&[
            Complexity::Low,
            Complexity::Medium,
            Complexity::Medium,
            Complexity::High,
            Complexity::Critical,
        ]);
        let own_size = self.dice.factor(0.35);
        let mut calls = Vec::new();
        for step in self.steps(complexity) {
            // A call that fails costs a part, and is made again.
            while self.dice.chance(0.04) {
                let part = self.dice.uniform();
                calls.push(self.call(&step, complexity, own_size * part));
            }
            calls.push(self.call(&step, complexity, own_size));
        }
        PastChange::of(&state(complexity, Phase::Complete, calls))
    }

    fn steps(&mut self, complexity: Complexity) -> Vec<StepName> {
        let spec = SpecId::new("s").unwrap();
        let (specs, layers): (&[u32], &[usize]) = match complexity {
            Complexity::Low => (&[0, 1, 1, 2], &[1, 1, 2, 3]),
            Complexity::Medium => (&[1, 1, 2, 3], &[1, 2, 3, 4]),
            Complexity::High => (&[1, 2, 3, 4, 5], &[2, 3, 4]),
            Complexity::Critical => (&[2, 3, 4, 6, 7], &[2, 3, 4, 4]),
        };
        let mut steps = Vec::new();
        if self.dice.chance(0.4) {
            steps.push(StepName::Clarify);
        }
        steps.extend([StepName::ProposalGen, StepName::ProposalReview]);
        for _ in 0..self.dice.pick(specs) {
            steps.extend([StepName::SpecGen(spec.clone()), StepName::SpecReview(spec.clone())]);
        }
        steps.extend([StepName::TasksGen, StepName::TasksReview]);
        for _ in 0..self.dice.rounds(self.trouble / 2.0, 2) {
            steps.push(StepName::FormatFix);
        }
        steps.push(StepName::Challenge);
        for _ in 0..self.dice.rounds(self.trouble, 4) {
            steps.extend([StepName::Reproposal, StepName::Challenge]);
        }
        steps.extend(Layer::ALL.into_iter().take(self.dice.pick(layers)).map(StepName::Implement));
        steps.push(StepName::Review);
        for _ in 0..self.dice.rounds(self.trouble, 3) {
            steps.extend([StepName::Fix, StepName::Review]);
        }
        steps
    }

    fn call(&mut self, step: &StepName, complexity: Complexity, own_size: f64) -> LlmCall {
        let kind = StepKind::of(step).unwrap();
        let config = Config::default();
        let who = Ledger::new(&config, &[]).who(kind, complexity);
        let model = models::full_name(who.agent, &who.model);
        let usual = usage(kind, complexity);
        let factor = self.size * own_size * self.dice.factor(0.5);
        let scaled = |tokens: u64, factor: f64| spread::whole(spread::number(tokens) * factor);
        let input = scaled(usual.input, factor);
        let used = Usage {
            input,
            cached: scaled(input, self.cached),
            output: scaled(usual.output, factor * self.dice.factor(0.3)),
            ..Usage::default()
        };
        let seconds = figures(kind, complexity, None).seconds * factor.sqrt() * self.pace;
        LlmCall {
            tokens_out: used.output,
            tokens_cached: used.cached,
            duration_ms: spread::whole(1000.0 * seconds * self.dice.factor(0.3)),
            ..call(step.clone(), model, used.input, who.price.unwrap().cost(used), 0)
        }
    }
}

/// Of how many changes the true figures were in the range, of how many, and how wide the range for
/// the cost was, as the logarithm of a factor.
#[derive(Debug, Default)]
struct Score {
    changes: f64,
    inside: [f64; 4],
    width: f64,
}

impl Score {
    fn take(&mut self, forecast: &Ranges, change: &PastChange) {
        let sum = |figure: fn(&Figures) -> f64| -> f64 {
            change.calls.iter().filter_map(|call| call.figures).map(|f| figure(&f)).sum()
        };
        let calls = spread::number(change.calls.len() as u64);
        let inside =
            |[least, most]: [f64; 2], used: f64| f64::from(u8::from(least <= used && used <= most));
        let Ranges { calls: c, tokens, cost_usd, seconds } = *forecast;
        let hits = [
            inside(c.map(spread::number), calls),
            inside(tokens.map(spread::number), sum(|f| f.tokens)),
            inside(cost_usd, sum(|f| f.cost)),
            inside(seconds.map(spread::number), sum(|f| f.seconds)),
        ];
        self.changes += 1.0;
        for (all, hit) in self.inside.iter_mut().zip(hits) {
            *all += hit;
        }
        self.width += (cost_usd[1] / cost_usd[0]).ln();
    }

    fn shares(&self) -> [f64; 4] {
        self.inside.map(|inside| inside / self.changes)
    }
}

/// Forecasts each change of some projects from so many others.
fn back_test(others: usize) -> Score {
    let config = Config::default();
    let mut score = Score::default();
    for seed in 0..24 {
        let mut project = MadeUp::new(seed);
        let changes: Vec<PastChange> = (0..=others).map(|_| project.change()).collect();
        for i in 0..changes.len() {
            let mut past = changes.clone();
            let change = past.remove(i);
            let complexity = change.complexity;
            let outlook =
                Outlook { complexity, config: &config, track: Track::Full, stage: Stage::new() };
            score.take(&forecast(&outlook, &past).ranges, &change);
        }
    }
    score
}

// contract W8
#[test]
fn made_up_changes_are_inside_their_forecast() {
    let mut report = String::new();
    for others in [0, 1, 3, 7, 15] {
        let score = back_test(others);
        let shares = score.shares().map(|share| format!("{:.0} %", share * 100.0));
        let width = (score.width / score.changes).exp();
        report += &format!("{others} others: {shares:?} inside, cost by a factor of {width:.1}\n");
        for share in score.shares() {
            assert!(share >= 0.8, "{report}");
        }
    }
    println!("{report}");
}
