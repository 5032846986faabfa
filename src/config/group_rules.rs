//! What may the members of a group of the identity provider do? The rules of the configuration.

use engine::customer::Scopes;
use engine::ids::CustomerId;
use serde_json::{Map, Value};

use crate::api::words::read_scopes;

/// The form of a rule, for the faults.
const FORM: &str = "must be a list of rules with `group`, and either `operator = true` or \
                    `customer` and `scopes`";

/// What the members of a group may do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GroupRule {
    /// The group, as the identity provider spells it.
    pub group: Box<str>,
    /// What its members may do.
    pub grant: PersonGrant,
}

/// What a person may do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PersonGrant {
    /// What the operator may.
    Operator,
    /// What an API client of this customer with these scopes may.
    Customer {
        /// The customer.
        customer: CustomerId,
        /// The scopes.
        scopes: Scopes,
    },
}

impl PersonGrant {
    /// What a member of these groups may do: what the first rule for one of them says, and, if that
    /// is about a customer, the scopes of all further rules about the same customer. Without such a
    /// rule nothing.
    pub fn of(rules: &[GroupRule], groups: &[String]) -> Option<Self> {
        let is_member = |rule: &&GroupRule| groups.iter().any(|group| **group == *rule.group);
        let mut granted = rules
            .iter()
            .filter(is_member)
            .map(|rule| rule.grant.clone());
        let first = granted.next()?;
        Some(granted.fold(first, Self::with))
    }

    fn with(self, other: Self) -> Self {
        match (self, other) {
            (
                Self::Customer { customer, scopes },
                Self::Customer {
                    customer: same,
                    scopes: more,
                },
            ) if customer == same => Self::Customer {
                customer,
                scopes: scopes.union(more),
            },
            (first, _) => first,
        }
    }
}

/// The rules of a JSON text, which a list of tables in the configuration file is turned into.
pub(super) fn group_rules(text: &str) -> Result<Vec<GroupRule>, String> {
    let Ok(Value::Array(rules)) = serde_json::from_str(text) else {
        return Err(FORM.to_owned());
    };
    let numbered = (1..).zip(rules);
    let read = numbered.map(|(number, rule): (usize, Value)| {
        let Value::Object(rule) = rule else {
            return Err(FORM.to_owned());
        };
        group_rule(rule).map_err(|why| format!("{FORM}: rule {number}: {why}"))
    });
    read.collect()
}

fn group_rule(mut rule: Map<String, Value>) -> Result<GroupRule, String> {
    let group = match rule.remove("group") {
        Some(Value::String(group)) if !group.is_empty() => group.into(),
        _ => return Err("`group` must be a text".to_owned()),
    };
    let parts = (
        rule.remove("operator"),
        rule.remove("customer"),
        rule.remove("scopes"),
    );
    if let Some(unknown) = rule.keys().next() {
        return Err(format!("`{unknown}` is unknown"));
    }
    let grant = match parts {
        (Some(Value::Bool(true)), None, None) => PersonGrant::Operator,
        (None, Some(Value::String(customer)), Some(Value::Array(scopes))) => {
            PersonGrant::Customer {
                customer: CustomerId::parse(&customer)
                    .map_err(|why| format!("`customer` {why}"))?,
                scopes: scopes_of(&scopes).map_err(|why| format!("`scopes` {why}"))?,
            }
        }
        _ => return Err("it needs `operator = true`, or `customer` and `scopes`".to_owned()),
    };
    Ok(GroupRule { group, grant })
}

fn scopes_of(words: &[Value]) -> Result<Scopes, String> {
    let words = words.iter().map(|word| word.as_str().map(str::to_owned));
    let words: Option<Vec<String>> = words.collect();
    read_scopes(&words.ok_or("must be texts")?)
}

#[cfg(test)]
mod tests {
    use engine::customer::Scope;

    use super::*;

    const RULES: &str = r#"[
        {"group": "readers", "customer": "acme", "scopes": ["devices:read"]},
        {"group": "others", "customer": "other", "scopes": ["all"]},
        {"group": "agents", "customer": "acme", "scopes": ["actions:read", "actions:write"]},
        {"group": "operators", "operator": true}
    ]"#;

    #[test]
    fn a_person_gets_what_the_first_rule_and_those_for_the_same_customer_say() {
        let devices = Scopes::NONE.with(Scope::DevicesRead);
        let actions = Scopes::NONE.with(Scope::ActionsRead);
        let actions = actions.with(Scope::ActionsWrite);
        for (groups, expected) in [
            (&["readers"][..], Some(acme(devices))),
            (&["agents"], Some(acme(actions))),
            (&["agents", "readers"], Some(acme(actions.union(devices)))),
            (&["others", "readers"], Some(acme(devices))),
            (&["operators", "readers"], Some(acme(devices))),
            (&["operators"], Some(PersonGrant::Operator)),
            (&["Readers", "reader", ""], None),
            (&[], None),
        ] {
            let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
            let rules = group_rules(RULES).unwrap();
            assert_eq!(PersonGrant::of(&rules, &groups), expected, "{groups:?}");
        }
    }

    #[test]
    fn a_rule_with_a_fault_is_refused_with_its_number() {
        for (rule, why) in [
            (r#"{"customer": "acme", "scopes": ["all"]}"#, "`group`"),
            (r#"{"group": "", "operator": true}"#, "`group`"),
            (r#"{"group": "a"}"#, "needs"),
            (r#"{"group": "a", "operator": false}"#, "needs"),
            (r#"{"group": "a", "customer": "acme"}"#, "needs"),
            (
                r#"{"group": "a", "operator": true, "customer": "acme", "scopes": ["all"]}"#,
                "needs",
            ),
            (
                r#"{"group": "a", "customer": "acme", "scopes": ["devices"]}"#,
                "`scopes`",
            ),
            (
                r#"{"group": "a", "customer": "acme", "scopes": []}"#,
                "`scopes`",
            ),
            (
                r#"{"group": "a", "customer": "a/b", "scopes": ["all"]}"#,
                "`customer`",
            ),
            (
                r#"{"group": "a", "operator": true, "scope": 1}"#,
                "`scope` is unknown",
            ),
        ] {
            let text = format!(r#"[{{"group": "b", "operator": true}}, {rule}]"#);
            let fault = group_rules(&text).unwrap_err();
            assert!(
                fault.contains("rule 2: ") && fault.contains(why),
                "{rule}: {fault}"
            );
        }
        for text in ["", "{}", "[1]"] {
            assert_eq!(group_rules(text).unwrap_err(), FORM, "{text}");
        }
    }

    fn acme(scopes: Scopes) -> PersonGrant {
        PersonGrant::Customer {
            customer: CustomerId::parse("acme").unwrap(),
            scopes,
        }
    }
}
