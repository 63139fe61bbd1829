//! Courses made up step by step, and where they part.

use super::*;

/// `place name=value name=value`, one step a word list.
fn steps(texts: &[&str]) -> Vec<Step> {
    let step = |(order, text): (usize, &&str)| {
        let mut words = text.split(' ');
        let place: Arc<str> = words.next().unwrap().into();
        let value = |word: &str| word.split_once('=').map(|(name, value)| (Arc::from(name), value.to_string()));
        Step {
            key: Arc::clone(&place),
            place,
            function: "work".into(),
            values: words.filter_map(value).collect(),
            whole: true,
            order: order as u64,
            seq: 1,
            hit: order as u64 + 1,
            ..Step::default()
        }
    };
    texts.iter().enumerate().map(step).collect()
}

fn parting(a: &[&str], b: &[&str]) -> (Parting, Vec<Fired>) {
    let mut rules = Rules::default();
    let found = compare(&mut steps(a).into_iter(), &mut steps(b).into_iter(), &mut rules);
    (found, rules.fired())
}

fn at(moment: Option<&Moment>) -> Option<(&str, u64)> {
    moment.map(|moment| (moment.place.as_str(), moment.number))
}

#[test]
fn the_first_different_value_is_named_with_where_it_was_last_equal() {
    let course = |bad: i32| -> Vec<String> {
        let line = |i: i32| {
            let value = if i == 7 { i + bad } else { i };
            format!("a.c:5 i={i} value={value} total={}", i * (i + 1) / 2 + if i >= 7 { bad } else { 0 })
        };
        (1..=20).map(line).chain([format!("a.c:9 total={}", 210 + bad)]).collect()
    };
    let (good, bad) = (course(0), course(1));
    let of = |list: &'_ [String]| -> Vec<Step> { steps(&list.iter().map(String::as_str).collect::<Vec<_>>()) };
    let found = compare(&mut of(&good).into_iter(), &mut of(&bad).into_iter(), &mut Rules::default());
    assert_eq!(at(found.last_equal.as_ref()), Some(("a.c:5", 6)));
    let value = found.value.unwrap();
    assert_eq!(at(Some(&value.a)), Some(("a.c:5", 7)));
    let told: Vec<(&str, Option<&str>, Option<&str>)> =
        value.values.iter().map(|value| (value.name.as_str(), value.a.as_deref(), value.b.as_deref())).collect();
    assert_eq!(told, [("value", Some("7"), Some("8")), ("total", Some("28"), Some("29"))]);
    let origin = value.values[1].last_equal.as_ref().unwrap();
    assert_eq!((at(Some(&origin.at)), origin.value.as_str()), (Some(("a.c:5", 6)), "21"));
    assert!(found.path.is_none() && !value.after_path);
    assert_eq!(found.counts, Counts { equal: 6, different: 15, only_a: 0, only_b: 0 });
}

#[test]
fn the_first_different_path_is_where_each_goes() {
    let (found, _) =
        parting(&["x:1", "x:2", "x:51", "x:3", "x:4", "x:5"], &["x:1", "x:2", "x:47", "x:3", "x:4", "x:5"]);
    let path = found.path.unwrap();
    assert_eq!(at(path.after.as_ref()), Some(("x:2", 1)));
    assert_eq!((at(path.a.as_ref()), at(path.b.as_ref())), (Some(("x:51", 1)), Some(("x:47", 1))));
    assert_eq!(at(found.last_equal.as_ref()), Some(("x:2", 1)));
    // They meet again, and are the same from there on.
    assert!(found.value.is_none() && !found.apart);
    assert_eq!(found.counts, Counts { equal: 5, different: 0, only_a: 1, only_b: 1 });
}

#[test]
fn a_value_behind_a_detour_is_found_at_the_step_that_is_the_same() {
    let (found, _) = parting(
        &["x:1", "x:2 n=1", "x:3", "x:4", "x:2 n=5"],
        &["x:1", "y:9", "y:9", "x:2 n=1", "x:3", "x:4", "x:2 n=6"],
    );
    assert_eq!(at(found.path.as_ref().unwrap().b.as_ref()), Some(("y:9", 1)));
    let value = found.value.unwrap();
    assert!(value.after_path);
    assert_eq!((at(Some(&value.a)), value.values[0].b.as_deref()), (Some(("x:2", 2)), Some("6")));
}

#[test]
fn a_run_that_ends_before_the_other_has_another_path() {
    let (found, _) = parting(&["x:1", "x:1"], &["x:1", "x:1", "x:1", "x:2"]);
    let path = found.path.unwrap();
    assert_eq!((path.a, at(path.b.as_ref())), (None, Some(("x:1", 3))));
    assert_eq!(found.counts, Counts { equal: 2, different: 0, only_a: 0, only_b: 2 });
    assert!(parting(&[], &[]).0.is_equal());
}

#[test]
fn courses_that_never_meet_again_are_said_to_be_apart() {
    let one: Vec<String> = (0..3000).map(|n| format!("x:{n}")).collect();
    let other: Vec<String> = (0..3000).map(|n| format!("y:{n}")).collect();
    let (one, other): (Vec<&str>, Vec<&str>) =
        (one.iter().map(String::as_str).collect(), other.iter().map(String::as_str).collect());
    let (found, _) = parting(&one, &other);
    assert!(found.apart && found.last_equal.is_none() && found.path.is_some());
}

#[test]
fn the_same_place_by_another_caller_is_another_path() {
    let frame =
        |function: &str, line| HitFrame { function: function.into(), file: Some("a.c".into()), line: Some(line) };
    let by = |line: u32| {
        let mut list = steps(&["a.c:5 n=1"]);
        list[0].frames = Arc::from([frame("work", 5), frame("main", line)]);
        list
    };
    let found = compare(&mut by(14).into_iter(), &mut by(20).into_iter(), &mut Rules::default());
    let callers = found.path.unwrap().callers.unwrap();
    assert_eq!(callers, ("main a.c:14".to_string(), "main a.c:20".to_string()));
    assert!(compare(&mut by(14).into_iter(), &mut by(14).into_iter(), &mut Rules::default()).is_equal());
}

#[test]
fn what_was_not_there_is_different_where_all_values_are_told() {
    let (found, _) = parting(&["x:1 a=1 b=2"], &["x:1 a=1 c=3"]);
    let values = found.value.unwrap().values;
    let told: Vec<(&str, bool, bool)> =
        values.iter().map(|value| (value.name.as_str(), value.a.is_some(), value.b.is_some())).collect();
    assert_eq!(told, [("b", true, false), ("c", false, true)]);
    let mut some = steps(&["x:1 a=1 b=2"]);
    some[0].whole = false;
    assert!(compare(&mut some.into_iter(), &mut steps(&["x:1 a=1"]).into_iter(), &mut Rules::default()).is_equal());
}

#[test]
fn functions_that_are_ignored_are_passed_over_and_counted() {
    let noisy = |texts: &[&str]| {
        let mut list = steps(texts);
        for step in &mut list {
            step.function = if step.place.starts_with("log") { "app.log_it".into() } else { "app.work".into() };
        }
        list
    };
    let wishes = Wishes { ignore: vec!["log_*()".into(), "noise".into()], ..Wishes::default() };
    let mut rules = Rules::new(Run::default(), Run::default(), wishes);
    let (mut a, mut b) =
        (noisy(&["x:1 noise=1", "log:1", "x:2"]).into_iter(), noisy(&["x:1 noise=2", "x:2"]).into_iter());
    assert!(compare(&mut a, &mut b, &mut rules).is_equal());
    let fired: Vec<(String, u64)> = rules.fired().into_iter().map(|fired| (fired.rule, fired.times)).collect();
    assert_eq!(fired, [("ignore log_*()".to_string(), 1), ("ignore noise".to_string(), 1)]);
}

#[test]
fn of_several_threads_the_earliest_difference_counts() {
    let (late, _) = parting(&["x:1 n=1", "x:2 n=1"], &["x:1 n=1", "x:2 n=2"]);
    let (mut early, _) = parting(&["x:1 n=1", "x:2 n=1"], &["x:1 n=2", "x:2 n=1"]);
    early.name_thread("worker");
    let (same, _) = parting(&["x:1", "x:2"], &["x:1", "x:2"]);
    let found = late.or_earlier(same).or_earlier(early);
    let value = found.value.unwrap();
    assert_eq!((value.a.place.as_str(), value.a.thread.as_deref()), ("x:1", Some("worker")));
    assert_eq!(found.last_equal, None);
}

/// A million steps take no more room than the window and what is told in the end.
#[test]
fn long_courses_are_compared_as_they_come() {
    let course = |wrong: u64| {
        (0..100_000_u64).map(move |order| {
            let value = if order == 99_000 { wrong } else { order };
            let place: Arc<str> = if order % 3 == 0 { "x:1".into() } else { "x:2".into() };
            Step {
                key: Arc::clone(&place),
                place,
                values: vec![("n".into(), value.to_string())],
                order,
                ..Step::default()
            }
        })
    };
    let found = compare(&mut course(99_000), &mut course(5), &mut Rules::default());
    let value = found.value.unwrap();
    assert_eq!((value.a.place.as_str(), value.a.number), ("x:1", 33_001));
    assert_eq!(value.values[0].last_equal.as_ref().unwrap().value, "98999");
}
