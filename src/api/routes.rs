//! The whole HTTP API on one page: method, path, access, handler and OpenAPI description.
//!
//! `ROUTES` has every route; nothing else is mounted.

use actix_web::http::Method;

use engine::customer::Scope;

use super::access::Access;
use super::actions::creating::{self, Coap, Lwm2m, Udp};
use super::actions::described::{coap, lwm2m, udp};
use super::brokers::{Brokers, described as broker};
use super::destinations::{self, dead_letters};
use super::firmware::campaigns;
use super::integrations::{Webhooks, described};
use super::plugins::Plugins;
use super::sms::described::{forwarder, network, wake_up};
use super::{
    actions, activity, backup, bootstrap, brokers, clients, console, customers, definitions,
    devices, docs, dtls, events, firmware, health, import, integrations, jobs, logs, messages,
    metrics, networks, nodes, openapi, plugins, presence, psk, public_key, schedules, series,
    settings, sms, strangers, tokens,
};

/// One route: method, path, access, description and handler.
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) access: Access,
    pub(super) describe: Describe,
    pub(super) answer: Answer,
}

use Access::{Customer, Network, Open, Operator};
use Scope::{
    ActionsRead, ActionsWrite, DevicesRead, DevicesWrite, IntegrationsRead, IntegrationsWrite,
    LogsRead, PluginsRead, PluginsWrite, SettingsRead, SettingsWrite, SmsRead, SmsWrite,
};

macro_rules! routes {
    ($($method:ident $path:literal $access:expr => $answer:expr, $describe:path;)+) => {
        /// Every route. Of paths that can match the same text, the literal one comes first.
        pub(super) const ROUTES: &[Route] = &[$(Route {
            method: Method::$method,
            path: $path,
            access: $access,
            describe: $describe,
            answer: |route| route.to($answer),
        },)+];
    };
}

routes! {
    // Health, metrics and documentation.
    GET "/livez"
        Open => health::livez, health::described::livez;
    GET "/readyz"
        Open => health::readyz, health::described::readyz;
    GET "/openapi.json"
        Open => openapi::show, openapi::described::show;
    GET "/"
        Open => console::front, docs::described::front;
    GET "/docs"
        Open => docs::page, docs::described::page;
    GET "/docs/style.css"
        Open => docs::style, docs::described::style;
    GET "/docs/script.js"
        Open => docs::script, docs::described::script;
    GET "/metrics"
        Open => metrics::show, metrics::described::show;
    // Access tokens.
    POST "/oauth/token"
        Open => tokens::issue, tokens::described::issue;
    POST "/management-api/oauth/token"
        Open => tokens::issue, tokens::described::issue_for_management;
    // The operator's customers and their API clients.
    POST "/operator-api/v1/customers"
        Operator => customers::create, customers::described::create;
    GET "/operator-api/v1/customers"
        Operator => customers::list, customers::described::list;
    DELETE "/operator-api/v1/customers/{customer}"
        Operator => customers::delete, customers::described::delete;
    GET "/operator-api/v1/customers/{customer}/networks"
        Operator => networks::show, networks::described::show;
    PUT "/operator-api/v1/customers/{customer}/networks"
        Operator => networks::set, networks::described::set;
    POST "/operator-api/v1/customers/{customer}/clients"
        Operator => clients::create, clients::described::create;
    GET "/operator-api/v1/customers/{customer}/clients"
        Operator => clients::list, clients::described::list;
    DELETE "/operator-api/v1/customers/{customer}/clients/{client}"
        Operator => clients::delete, clients::described::delete;
    POST "/operator-api/v1/customers/{customer}/clients/{client}/secrets"
        Operator => clients::create_secret, clients::described::create_secret;
    DELETE "/operator-api/v1/customers/{customer}/clients/{client}/secrets/{secret}"
        Operator => clients::delete_secret, clients::described::delete_secret;
    // A backup of the store.
    GET "/operator-api/v1/backup"
        Operator => backup::send, backup::described::send;
    // The nodes of the service.
    GET "/operator-api/v1/nodes"
        Operator => nodes::list, nodes::described::list;
    POST "/operator-api/v1/nodes/{node}/drain"
        Operator => nodes::drain, nodes::described::drain;
    // The operator's view of senders that are no known device.
    GET "/operator-api/v1/strangers"
        Operator => strangers::list, strangers::described::list;
    // Devices.
    POST "/management-api/v1/devices"
        Customer(DevicesWrite) => devices::create, devices::described::create;
    GET "/management-api/v1/devices"
        Customer(DevicesRead) => devices::list, devices::described::list;
    POST "/management-api/v1/devices/import"
        Customer(DevicesWrite) => import::create, import::described::create;
    GET "/management-api/v1/devices/{device}"
        Customer(DevicesRead) => devices::inspect, devices::described::inspect;
    PATCH "/management-api/v1/devices/{device}"
        Customer(DevicesWrite) => devices::amending::amend, devices::described::amend;
    DELETE "/management-api/v1/devices/{device}"
        Customer(DevicesWrite) => devices::delete, devices::described::delete;
    POST "/management-api/v1/devices/{device}/psk"
        Customer(DevicesWrite) => psk::give, psk::described::give;
    DELETE "/management-api/v1/devices/{device}/psk"
        Customer(DevicesWrite) => psk::remove, psk::described::remove;
    POST "/management-api/v1/devices/{device}/psk/generate"
        Customer(DevicesWrite) => psk::generate, psk::described::generate;
    PUT "/management-api/v1/devices/{device}/public-key"
        Customer(DevicesWrite) => public_key::put, public_key::described::put;
    DELETE "/management-api/v1/devices/{device}/public-key"
        Customer(DevicesWrite) => public_key::remove, public_key::described::remove;
    // Identities over DTLS.
    GET "/management-api/v1/dtls"
        Customer(DevicesRead) => dtls::show, dtls::described::show;
    GET "/management-api/v1/dtls/certificate-authorities"
        Customer(DevicesRead) => dtls::show_authorities, dtls::described::show_authorities;
    PUT "/management-api/v1/dtls/certificate-authorities"
        Customer(DevicesWrite) => dtls::put_authorities_of_customer,
            dtls::described::put_authorities;
    DELETE "/management-api/v1/dtls/certificate-authorities"
        Customer(DevicesWrite) => dtls::remove_authorities, dtls::described::remove_authorities;
    GET "/management-api/v1/devices/{device}/wakeup"
        Customer(DevicesRead) => sms::wake_up::show, wake_up::show_of_device;
    PUT "/management-api/v1/devices/{device}/wakeup"
        Customer(DevicesWrite) => sms::wake_up::put, wake_up::put_of_device;
    DELETE "/management-api/v1/devices/{device}/wakeup"
        Customer(DevicesWrite) => sms::wake_up::delete, wake_up::delete_of_device;
    GET "/management-api/v1/devices/{device}/bootstrap"
        Customer(DevicesRead) => bootstrap::show, bootstrap::described::show_of_device;
    PUT "/management-api/v1/devices/{device}/bootstrap"
        Customer(DevicesWrite) => bootstrap::put, bootstrap::described::put_of_device;
    DELETE "/management-api/v1/devices/{device}/bootstrap"
        Customer(DevicesWrite) => bootstrap::delete, bootstrap::described::delete_of_device;
    GET "/management-api/v1/bootstrap"
        Customer(DevicesRead) => bootstrap::show, bootstrap::described::show;
    PUT "/management-api/v1/bootstrap"
        Customer(DevicesWrite) => bootstrap::put, bootstrap::described::put;
    DELETE "/management-api/v1/bootstrap"
        Customer(DevicesWrite) => bootstrap::delete, bootstrap::described::delete;
    GET "/management-api/v1/devices/{device}/messages"
        Customer(DevicesRead) => messages::list, messages::described::list;
    GET "/management-api/v1/devices/{device}/series"
        Customer(DevicesRead) => series::show, series::described::show;
    // The events of all devices.
    GET "/management-api/v1/events/stream"
        Customer(DevicesRead) => events::stream, events::described::stream;
    // Action requests (seed 4.2 to 4.7).
    GET "/management-api/v1/integrate/devices/actions/requests"
        Customer(ActionsRead) => actions::list, actions::described::list;
    GET "/management-api/v1/integrate/devices/actions/requests/active"
        Customer(ActionsRead) => actions::active, actions::described::active;
    GET "/management-api/v1/integrate/devices/actions/requests/archived"
        Customer(ActionsRead) => actions::archived, actions::described::archived;
    GET "/management-api/v1/integrate/devices/actions/requests/{request}"
        Customer(ActionsRead) => actions::show, actions::described::show;
    DELETE "/management-api/v1/integrate/devices/actions/requests/{request}"
        Customer(ActionsWrite) => actions::cancel, actions::described::cancel;
    DELETE "/management-api/v1/integrate/devices/{device}/actions/requests"
        Customer(ActionsWrite) => actions::cancel_all, actions::described::cancel_all;
    POST "/management-api/v1/integrate/devices/{device}/actions/UDP"
        Customer(ActionsWrite) => creating::create::<Udp>, udp::create;
    POST "/management-api/v1/integrate/devices/{device}/actions/COAP"
        Customer(ActionsWrite) => creating::create::<Coap>, coap::create;
    POST "/management-api/v1/integrate/devices/{device}/actions/LWM2M"
        Customer(ActionsWrite) => creating::create::<Lwm2m>, lwm2m::create;
    POST "/management-api/v1/integrate/devices/actions/UDP"
        Customer(ActionsWrite) => creating::create_many::<Udp>, udp::create_many;
    POST "/management-api/v1/integrate/devices/actions/COAP"
        Customer(ActionsWrite) => creating::create_many::<Coap>, coap::create_many;
    POST "/management-api/v1/integrate/devices/actions/LWM2M"
        Customer(ActionsWrite) => creating::create_many::<Lwm2m>, lwm2m::create_many;
    // Jobs, which bulk calls with a filter create.
    GET "/management-api/v1/jobs"
        Customer(ActionsRead) => jobs::list, jobs::described::list;
    GET "/management-api/v1/jobs/{job}"
        Customer(ActionsRead) => jobs::show, jobs::described::show;
    DELETE "/management-api/v1/jobs/{job}"
        Customer(ActionsWrite) => jobs::cancel, jobs::described::cancel;
    GET "/management-api/v1/jobs/{job}/devices"
        Customer(ActionsRead) => jobs::devices, jobs::described::devices;
    // Schedules, which create jobs.
    POST "/management-api/v1/schedules"
        Customer(ActionsWrite) => schedules::create, schedules::described::create;
    GET "/management-api/v1/schedules"
        Customer(ActionsRead) => schedules::list, schedules::described::list;
    GET "/management-api/v1/schedules/{schedule}"
        Customer(ActionsRead) => schedules::show, schedules::described::show;
    PATCH "/management-api/v1/schedules/{schedule}"
        Customer(ActionsWrite) => schedules::amend, schedules::described::amend;
    DELETE "/management-api/v1/schedules/{schedule}"
        Customer(ActionsWrite) => schedules::delete, schedules::described::delete;
    // Firmware images and campaigns.
    POST "/management-api/v1/firmware/images"
        Customer(DevicesWrite) => firmware::create, firmware::described::create_image;
    GET "/management-api/v1/firmware/images"
        Customer(DevicesRead) => firmware::list, firmware::described::list_images;
    GET "/management-api/v1/firmware/images/{image}"
        Customer(DevicesRead) => firmware::show, firmware::described::show_image;
    DELETE "/management-api/v1/firmware/images/{image}"
        Customer(DevicesWrite) => firmware::delete, firmware::described::delete_image;
    POST "/management-api/v1/firmware/campaigns"
        Customer(DevicesWrite) => campaigns::create, firmware::described::create_campaign;
    GET "/management-api/v1/firmware/campaigns"
        Customer(DevicesRead) => campaigns::list, firmware::described::list_campaigns;
    GET "/management-api/v1/firmware/campaigns/{campaign}"
        Customer(DevicesRead) => campaigns::show, firmware::described::show_campaign;
    GET "/management-api/v1/firmware/campaigns/{campaign}/devices"
        Customer(DevicesRead) => campaigns::devices, firmware::described::campaign_devices;
    POST "/management-api/v1/firmware/campaigns/{campaign}/pause"
        Customer(DevicesWrite) => campaigns::pause, firmware::described::pause;
    POST "/management-api/v1/firmware/campaigns/{campaign}/resume"
        Customer(DevicesWrite) => campaigns::resume, firmware::described::resume;
    POST "/management-api/v1/firmware/campaigns/{campaign}/cancel"
        Customer(DevicesWrite) => campaigns::cancel, firmware::described::cancel;
    GET "/firmware/{campaign}/{key}"
        Open => firmware::serving::send, firmware::described::send;
    // Cloud integrations.
    POST "/management-api/v1/integrate/clouds/webhooks"
        Customer(IntegrationsWrite) => integrations::create, integrations::described::create;
    GET "/management-api/v1/integrate/clouds/webhooks"
        Customer(IntegrationsRead) => destinations::list::<Webhooks>, integrations::described::list;
    GET "/management-api/v1/integrate/clouds/webhooks/{webhook}"
        Customer(IntegrationsRead) => destinations::show::<Webhooks>, described::show;
    PATCH "/management-api/v1/integrate/clouds/webhooks/{webhook}"
        Customer(IntegrationsWrite) => integrations::amend, integrations::described::amend;
    DELETE "/management-api/v1/integrate/clouds/webhooks/{webhook}"
        Customer(IntegrationsWrite) => destinations::delete::<Webhooks>, described::delete;
    POST "/management-api/v1/integrate/clouds/webhooks/{webhook}/test"
        Customer(IntegrationsWrite) => destinations::test::<Webhooks>, described::test;
    POST "/management-api/v1/integrate/clouds/webhooks/{webhook}/restart"
        Customer(IntegrationsWrite) => destinations::restart::<Webhooks>, described::restart;
    GET "/management-api/v1/integrate/clouds/webhooks/{webhook}/deadletters"
        Customer(IntegrationsRead) => dead_letters::list::<Webhooks>, described::letters;
    DELETE "/management-api/v1/integrate/clouds/webhooks/{webhook}/deadletters"
        Customer(IntegrationsWrite) => dead_letters::discard_all::<Webhooks>,
            described::discard_all;
    POST "/management-api/v1/integrate/clouds/webhooks/{webhook}/deadletters/replay"
        Customer(IntegrationsWrite) => dead_letters::replay::<Webhooks>, described::replay;
    DELETE "/management-api/v1/integrate/clouds/webhooks/{webhook}/deadletters/{event}"
        Customer(IntegrationsWrite) => dead_letters::discard::<Webhooks>, described::discard;
    POST "/management-api/v1/integrate/clouds/mqtt"
        Customer(IntegrationsWrite) => brokers::create, broker::create;
    GET "/management-api/v1/integrate/clouds/mqtt"
        Customer(IntegrationsRead) => destinations::list::<Brokers>, broker::list;
    GET "/management-api/v1/integrate/clouds/mqtt/{broker}"
        Customer(IntegrationsRead) => destinations::show::<Brokers>, broker::show;
    PATCH "/management-api/v1/integrate/clouds/mqtt/{broker}"
        Customer(IntegrationsWrite) => brokers::amend, broker::amend;
    DELETE "/management-api/v1/integrate/clouds/mqtt/{broker}"
        Customer(IntegrationsWrite) => destinations::delete::<Brokers>, broker::delete;
    POST "/management-api/v1/integrate/clouds/mqtt/{broker}/test"
        Customer(IntegrationsWrite) => destinations::test::<Brokers>, broker::test;
    POST "/management-api/v1/integrate/clouds/mqtt/{broker}/restart"
        Customer(IntegrationsWrite) => destinations::restart::<Brokers>, broker::restart;
    GET "/management-api/v1/integrate/clouds/mqtt/{broker}/deadletters"
        Customer(IntegrationsRead) => dead_letters::list::<Brokers>, broker::letters;
    DELETE "/management-api/v1/integrate/clouds/mqtt/{broker}/deadletters"
        Customer(IntegrationsWrite) => dead_letters::discard_all::<Brokers>, broker::discard_all;
    POST "/management-api/v1/integrate/clouds/mqtt/{broker}/deadletters/replay"
        Customer(IntegrationsWrite) => dead_letters::replay::<Brokers>, broker::replay;
    DELETE "/management-api/v1/integrate/clouds/mqtt/{broker}/deadletters/{event}"
        Customer(IntegrationsWrite) => dead_letters::discard::<Brokers>, broker::discard;
    // Plugins of partners (seed 4.10).
    GET "/management-api/v1/partners/plugins"
        Customer(PluginsRead) => destinations::list::<Plugins>, plugins::described::list;
    GET "/management-api/v1/partners/plugins/{plugin}"
        Customer(PluginsRead) => destinations::show::<Plugins>, plugins::described::show;
    DELETE "/management-api/v1/partners/plugins/{plugin}"
        Customer(PluginsWrite) => destinations::delete::<Plugins>, plugins::described::uninstall;
    POST "/management-api/v1/partners/plugins/{plugin}/restart"
        Customer(PluginsWrite) => plugins::restart, plugins::described::restart;
    GET "/management-api/v1/partners/plugins/{plugin}/deadletters"
        Customer(PluginsRead) => dead_letters::list::<Plugins>, plugins::described::letters;
    DELETE "/management-api/v1/partners/plugins/{plugin}/deadletters"
        Customer(PluginsWrite) => dead_letters::discard_all::<Plugins>,
            plugins::described::discard_all;
    POST "/management-api/v1/partners/plugins/{plugin}/deadletters/replay"
        Customer(PluginsWrite) => dead_letters::replay::<Plugins>, plugins::described::replay;
    DELETE "/management-api/v1/partners/plugins/{plugin}/deadletters/{event}"
        Customer(PluginsWrite) => dead_letters::discard::<Plugins>, plugins::described::discard;
    POST "/management-api/v1/partners/{partner}/plugins"
        Customer(PluginsWrite) => plugins::install, plugins::described::install;
    GET "/management-api/v1/partners/{partner}/plugins"
        Customer(PluginsRead) => plugins::list_of_partner, plugins::described::list_of_partner;
    // SMS (seed 4.11, 6).
    GET "/management-api/v1/sms/forwarder"
        Customer(SmsRead) => sms::forwarder::show, forwarder::show;
    PUT "/management-api/v1/sms/forwarder"
        Customer(SmsWrite) => sms::forwarder::put, forwarder::put;
    DELETE "/management-api/v1/sms/forwarder"
        Customer(SmsWrite) => sms::forwarder::delete, forwarder::delete;
    POST "/management-api/v1/sms/forwarder/test"
        Customer(SmsWrite) => sms::forwarder::test, forwarder::test;
    GET "/management-api/v1/sms/forwarder/deadletters"
        Customer(SmsRead) => sms::forwarder::letters, forwarder::letters;
    DELETE "/management-api/v1/sms/forwarder/deadletters"
        Customer(SmsWrite) => sms::forwarder::discard_all, forwarder::discard_all;
    POST "/management-api/v1/sms/forwarder/deadletters/replay"
        Customer(SmsWrite) => sms::forwarder::replay, forwarder::replay;
    DELETE "/management-api/v1/sms/forwarder/deadletters/{event}"
        Customer(SmsWrite) => sms::forwarder::discard, forwarder::discard;
    GET "/management-api/v1/sms/wakeup"
        Customer(SmsRead) => sms::wake_up::show, wake_up::show;
    PUT "/management-api/v1/sms/wakeup"
        Customer(SmsWrite) => sms::wake_up::put, wake_up::put;
    DELETE "/management-api/v1/sms/wakeup"
        Customer(SmsWrite) => sms::wake_up::delete, wake_up::delete;
    POST "/management-api/v1/sims/{iccid}/sms"
        Customer(SmsWrite) => sms::create, sms::described::create;
    GET "/management-api/v1/sims/{iccid}/sms"
        Customer(SmsRead) => sms::list, sms::described::list;
    GET "/management-api/v1/sims/{iccid}/sms/{sms}"
        Customer(SmsRead) => sms::show, sms::described::show;
    DELETE "/management-api/v1/sims/{iccid}/sms/{sms}"
        Customer(SmsWrite) => sms::cancel, sms::described::cancel;
    // The network side of SMS, and its API clients.
    POST "/operator-api/v1/network/sms/mo"
        Network => sms::network::receive, network::receive;
    POST "/operator-api/v1/network/sms/dlr"
        Network => sms::network::report, network::report;
    POST "/operator-api/v1/network/sms/mt"
        Operator => sms::network::take, network::take;
    POST "/operator-api/v1/network/clients"
        Operator => clients::create, clients::described::create_of_network;
    GET "/operator-api/v1/network/clients"
        Operator => clients::list, clients::described::list_of_network;
    DELETE "/operator-api/v1/network/clients/{client}"
        Operator => clients::delete, clients::described::delete_of_network;
    POST "/operator-api/v1/network/clients/{client}/secrets"
        Operator => clients::create_secret, clients::described::create_secret_of_network;
    DELETE "/operator-api/v1/network/clients/{client}/secrets/{secret}"
        Operator => clients::delete_secret, clients::described::delete_secret_of_network;
    // After how long a silence devices are offline.
    GET "/management-api/v1/activity"
        Customer(DevicesRead) => activity::show, activity::described::show;
    GET "/management-api/v1/presence"
        Customer(SettingsRead) => presence::show, presence::described::show;
    PATCH "/management-api/v1/presence"
        Customer(SettingsWrite) => presence::change, presence::described::change;
    // Settings (seed 4.1).
    GET "/management-api/v1/settings/{platform}"
        Customer(SettingsRead) => settings::list, settings::described::list;
    GET "/management-api/v1/settings/{platform}/{setting}"
        Customer(SettingsRead) => settings::show, settings::described::show;
    PATCH "/management-api/v1/settings/{platform}/{setting}"
        Customer(SettingsWrite) => settings::change, settings::described::change;
    // Customers' own objects.
    PUT "/management-api/v1/lwm2m/objects"
        Customer(SettingsWrite) => definitions::put, definitions::described::put;
    GET "/management-api/v1/lwm2m/objects"
        Customer(SettingsRead) => definitions::list, definitions::described::list;
    GET "/management-api/v1/lwm2m/objects/{object}/{version}"
        Customer(SettingsRead) => definitions::show, definitions::described::show;
    DELETE "/management-api/v1/lwm2m/objects/{object}/{version}"
        Customer(SettingsWrite) => definitions::delete, definitions::described::delete;
    // Administration log (seed 4.8, 4.9).
    GET "/management-api/v1/administrationLogs"
        Customer(LogsRead) => logs::list, logs::described::list;
    GET "/management-api/v1/administrationLogs/stats"
        Customer(LogsRead) => logs::statistics::show, logs::described::statistics;
    GET "/management-api/v1/administrationLogs/{entry}"
        Customer(LogsRead) => logs::show, logs::described::show;
    GET "/management-api/v1/administrationLogs/{entry}/payload"
        Customer(LogsRead) => logs::payload, logs::described::payload;
}

/// The OpenAPI description of a route.
type Describe = fn() -> openapi::ApiOperation;

/// Sets the handler of a route.
type Answer = fn(actix_web::Route) -> actix_web::Route;
