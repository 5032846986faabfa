// Every view of a person with all scopes: its path, what it shows once it is loaded, and the scope it needs.
const { WEBHOOK, FAILED_REQUEST, CUSTOMER, CAMPAIGN, SCHEDULE } = process.env;

export const views = [
  ["", "Requests of the last 7 days", "devices:read"],
  ["/devices", "meter-1", "devices:read"],
  ["/new-device", "Create the device", "devices:write"],
  ["/import", "NDJSON", "devices:write"],
  ["/devices/meter-1", "Pending requests", "devices:read"],
  ["/devices/meter-1/resources", "LwM2M Server", "devices:read"],
  ["/devices/meter-1/requests", "write /1/0/1 = soon", "actions:read"],
  ["/devices/meter-1/messages", "The device registered.", "devices:read"],
  ["/devices/meter-1/messages?path=/3303/0/5700", "LwM2M send", "devices:read"],
  ["/devices/meter-1/sms", "valve open", "sms:read"],
  ["/devices/meter-1/log", "DeviceController[InvalidDataType]", "logs:read"],
  ["/devices/meter-1/settings", "Pre-shared key", "devices:write"],
  ["/bulk?q=meter", "All devices that match", "actions:write"],
  ["/bulk?ids=meter-1", "Selected devices (1)", "actions:write"],
  ["/jobs", "Requests to all devices that matched", "actions:read"],
  ["/firmware", "Skipped", "devices:read"],
  ["/firmware/images", "Meter 1.5.0", "devices:read"],
  [`/firmware/campaigns/${CAMPAIGN}`, "1 of 1 devices have ended.", "devices:read"],
  ["/new-campaign?q=meter", "Create the campaign", "devices:write"],
  ["/schedules", "Battery", "actions:read"],
  [`/schedules/${SCHEDULE}`, "daily at 06:30", "actions:read"],
  ["/new-schedule?q=meter", "Create the schedule", "actions:write"],
  ["/requests", "write /1/0/1 = soon", "actions:read"],
  [`/requests/${FAILED_REQUEST}`, "Why it failed", "actions:read"],
  ["/log", "DeviceController[InvalidDataType]", "logs:read"],
  ["/integrations", "Warehouse", "integrations:read"],
  [`/integrations/webhooks/${WEBHOOK}`, "the endpoint answered 500", "integrations:read"],
  ["/integrations/sms/forwarder", "/sms/", "sms:read"],
  ["/integrations/webhooks/new", "Create the webhook", "integrations:write"],
  ["/integrations/mqtt/new", "Topic prefix", "integrations:write"],
  ["/integrations/plugins/new", "Install the plugin", "plugins:write"],
  ["/settings", "Passive reporting", "settings:read"],
];

/** The views of the operator. */
export const operatorViews = [
  ["/customers", "New customer"],
  [`/customers/${CUSTOMER}`, "Networks"],
  ["/network", "API clients"],
  ["/unknown-senders", "None since the start"],
  ["/health", "Activity per minute"],
];
