//! The guide to the work queue over HTTP: every request of it is made as it stands there.

use gt_testkit::{Ran, wait_until};

use crate::agents::Stage as _;
use crate::serving::{Served, text};
use crate::support::town;

const GUIDE: &str = include_str!("../../../../docs/guides/http-api.md");

/// The commands of the guide that ask with curl, in order, each with all of its lines.
fn requests() -> Vec<String> {
    let blocks = GUIDE.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let joined: Vec<String> = blocks.map(|block| block.replace("\\\n", " ")).collect();
    let lines = joined.iter().flat_map(|block| block.lines());
    lines.filter(|line| line.contains("curl ")).map(str::to_owned).collect()
}

/// Somebody who reads the guide and types what it says.
struct Reader<'a> {
    server: &'a Served,
    token: String,
    id: String,
    run: String,
}

impl Reader<'_> {
    fn types(&self, request: &str) -> gt_testkit::Invocation {
        // Its server is elsewhere, and what is refused is an error here.
        let request = request.replace("localhost:8080", &self.server.address);
        let here = format!("http://{}", self.server.address);
        let request = request.replace("https://queue.example", &here);
        let request = request.replace("curl ", "curl --fail-with-body ");
        let shell = self.server.town.command("/bin/sh").args(["-euc", &request]);
        shell.env("id", &self.id).env("run", &self.run).env("token", &self.token)
    }

    #[track_caller]
    fn asks(&self, request: &str) -> Ran {
        self.types(request).run().ok()
    }
}

#[test]
fn every_request_of_the_guide_does_what_it_says() {
    let town = town();
    let made = town.start_gt(&["token", "create", "steve-w", "--scope", "work", "--json"]);
    let token = text(&made.run().ok().json()["token"]);
    let server = Served::of(town, &[]);
    let mut reader = Reader { server: &server, token, id: String::new(), run: String::new() };
    let requests = requests();
    assert_eq!(requests.len(), 15, "{requests:#?}");
    for request in requests {
        if request.starts_with("id=") {
            reader.id = reader.asks(&format!("{request}; printf %s \"$id\"")).stdout;
            assert_eq!(reader.id.len(), 36, "{}", reader.id);
        } else if request.contains("/work/next") {
            let submitted = server.submit("Water the plants");
            let taken = reader.asks(&request).json();
            (reader.id, reader.run) = (text(&taken["item"]["id"]), text(&taken["run_id"]));
            assert_eq!(reader.id, submitted);
        } else if request.contains("/events") {
            let listening = reader.types(&request).start();
            wait_until("the stream begins", || listening.stdout().contains("listening"));
            listening.kill();
        } else {
            let answer = reader.asks(&request).json();
            assert!(answer.is_object() || answer.is_array(), "{request}: {answer}");
        }
    }
    server.stop();
}
