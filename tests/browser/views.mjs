// Every view of a person with all scopes: its path, and what it shows once it is loaded.
const { WEBHOOK, FAILED_REQUEST } = process.env;

export const views = [
  ["", "Requests of the last 7 days"],
  ["/devices", "meter-1"],
  ["/devices/meter-1", "Pending requests"],
  ["/devices/meter-1/resources", "LwM2M Server"],
  ["/devices/meter-1/requests", "write /1/0/1 = soon"],
  ["/devices/meter-1/messages", "lifecycle"],
  ["/devices/meter-1/log", "DeviceController[InvalidDataType]"],
  ["/requests", "write /1/0/1 = soon"],
  [`/requests/${FAILED_REQUEST}`, "Why it failed"],
  ["/log", "DeviceController[InvalidDataType]"],
  ["/integrations", "Warehouse"],
  [`/integrations/webhooks/${WEBHOOK}`, "the endpoint answered 500"],
];
