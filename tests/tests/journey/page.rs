//! A result as a page, in a real browser.

use ci_tests::kit;
use ci_tests::workshop::{Ends, Workshop};

/// The elements of a page after its script has run. `None`: there is no browser here.
fn elements(workshop: &Workshop, page: &str, fragment: &str) -> Option<String> {
    let (url, out) = (format!("file://{}{fragment}", workshop.path(page).display()), workshop.path("elements.html"));
    kit::run("screenshot", &[&url, out.to_str().expect("a path of ours is UTF-8"), "1200x800"], &[])?;
    // The data of the page is no element of it.
    let text = workshop.read("elements.html");
    let (before, rest) = text.split_once("<script").expect("the page has a script");
    Some(format!("{before}{}", rest.rsplit_once("</script>").expect("it ends").1))
}

const JOB: &str = "spec: {inputs: {token: {type: string, sensitive: true}}}
---
run:
  - {name: outer, step: ../outer}
  - {name: last, script: 'echo \"</script><b>\"; exit 7', env: {TOKEN: '${{ inputs.token }}'}}
";

#[test]
fn a_page_shows_what_failed_and_on_demand_everything_about_it() {
    let workshop = Workshop::new();
    workshop.file("outer/step.yml", "{}\n---\nrun: [{name: inner_one, script: 'true'}, {name: inner_two, script: 'true'}]\n");
    workshop.run_definition(JOB, &["--input", "token=hunter2-hunter2", "--result", "result.json"]).ends(1);
    workshop.step_runner(&["show", "result.json", "--html", "page.html"]).ends(0);
    let page = workshop.read("page.html");
    assert!(!page.contains("hunter2"), "a secret is in the page");

    let Some(all) = elements(&workshop, "page.html", "") else { return };
    let row = |name: &str| all.split("<div class=\"row ").find(|row| row.contains(&format!(">{name}</span>"))).map(str::to_owned);
    assert!(row("inner_one").is_some_and(|row| row.starts_with("ok")), "{all}");
    assert!(row("last").is_some_and(|row| row.starts_with("bad")), "{all}");
    assert!(all.contains("exec: exit status 7") && all.contains("Show last"), "{all}");

    let one = elements(&workshop, "page.html", "#5").expect("there was a browser");
    let (_, panel) = one.split_once("<aside").expect("the details are open");
    for said in ["echo \"&lt;/script&gt;&lt;b&gt;\"; exit 7", "exit code", "Environment (", "<mark", "[MASKED string "] {
        assert!(panel.contains(said), "{said}\n{panel}");
    }
}

#[test]
fn a_page_of_ten_thousand_steps_draws_those_in_view() {
    let workshop = Workshop::new();
    let step = |name: String, below: String| {
        format!(
            r#"{{"step":{{"name":"{name}"}},"status":"success","startTime":"2023-11-14T22:13:20Z","endTime":"2023-11-14T22:13:21Z","subStepResults":[{below}]}}"#
        )
    };
    let group = |number: usize| {
        let steps: Vec<_> = (0..100).map(|at| step(format!("s{number}-{at}"), String::new())).collect();
        step(format!("group {number}"), steps.join(","))
    };
    let groups: Vec<_> = (0..100).map(group).collect();
    workshop.file("result.json", step(String::new(), groups.join(",")));
    workshop.step_runner(&["show", "result.json", "--html", "page.html"]).ends(0);
    let Some(all) = elements(&workshop, "page.html", "") else { return };
    let drawn = all.matches("<div class=\"row ").count();
    assert!((20..200).contains(&drawn), "{drawn} rows are drawn");
    assert!(all.contains(">group 3</span>") && all.contains("+100") && all.contains(">10100<"), "{all}");
}
