// Which view does an address show? The address has everything that a view needs to be shown again.
import type { QueryClient } from "@tanstack/react-query";
import {
  Link,
  Navigate,
  createRootRouteWithContext,
  createRoute,
  createRouter,
} from "@tanstack/react-router";

import { DeviceMessages, readHistorySearch } from "./devices/DeviceMessages";
import { DeviceOverview, DevicePage } from "./devices/DevicePage";
import { DeviceLog, DeviceRequests } from "./devices/DeviceRequests";
import { DeviceResources } from "./devices/DeviceResources";
import { DeviceSettings } from "./devices/DeviceSettings";
import { DevicesPage, readDeviceSearch } from "./devices/DevicesPage";
import { ImportPage } from "./devices/ImportPage";
import { NewDevicePage } from "./devices/NewDevicePage";
import { IntegrationPage } from "./integrations/IntegrationPage";
import { IntegrationsPage } from "./integrations/IntegrationsPage";
import { NewIntegrationPage } from "./integrations/NewIntegrationPage";
import { CampaignPage } from "./firmware/CampaignPage";
import { CampaignsPage, ImagesPage } from "./firmware/FirmwarePages";
import { NewCampaignPage } from "./firmware/NewCampaignPage";
import { readAskedSearch } from "./jobs/asked";
import { BulkPage } from "./jobs/BulkPage";
import { JobPage, JobsPage } from "./jobs/JobsPage";
import { EntryPage } from "./logs/EntryPage";
import { LogPage, readLogSearch } from "./logs/LogPage";
import { CustomerPage } from "./operator/CustomerPage";
import { HealthPage, NetworkPage } from "./operator/HealthPage";
import { CustomersPage, StrangersPage } from "./operator/OperatorPages";
import { OverviewPage } from "./overview/OverviewPage";
import { RequestPage } from "./requests/RequestPage";
import { RequestsPage, readRequestSearch } from "./requests/RequestsPage";
import { NewSchedulePage } from "./schedules/NewSchedulePage";
import { SchedulePage, SchedulesPage } from "./schedules/SchedulesPages";
import { sessionQuery, useSession } from "./session/query";
import { SettingsPage } from "./settings/SettingsPage";
import { Shell } from "./shell/Shell";
import { DeviceSms } from "./sms/DeviceSms";
import { Page } from "./ui/parts";
import { type Search, given, page } from "./ui/search";
import { Empty, Failed } from "./ui/states";

const root = createRootRouteWithContext<{ queries: QueryClient }>()({
  component: Shell,
  loader: ({ context }) => context.queries.query({ ...sessionQuery, staleTime: "static" }),
  notFoundComponent: NotFound,
  errorComponent: ({ error }) => <Failed what="view" error={error as Error} />,
});

function NotFound() {
  return (
    <Page title="Not found">
      <Empty title="There is no such view.">
        <Link to="/">Go to the first one</Link>
      </Empty>
    </Page>
  );
}

/** Reads the page number alone. */
const paged = (search: Search) => given({ page: page(search) });

const home = createRoute({
  getParentRoute: () => root,
  path: "/",
  component: function Home() {
    const isOperator = useSession().role === "OPERATOR";
    return isOperator ? <Navigate to="/customers" replace /> : <OverviewPage />;
  },
});

const devices = createRoute({
  getParentRoute: () => root,
  path: "/devices",
  validateSearch: readDeviceSearch,
  component: () => <DevicesPage search={devices.useSearch()} />,
});

const device = createRoute({
  getParentRoute: () => root,
  path: "/devices/$deviceId",
  component: function Device() {
    const { deviceId } = device.useParams();
    return <DevicePage key={deviceId} id={deviceId} />;
  },
});

const deviceOverview = createRoute({
  getParentRoute: () => device,
  path: "/",
  component: () => <DeviceOverview id={device.useParams().deviceId} />,
});

const deviceResources = createRoute({
  getParentRoute: () => device,
  path: "/resources",
  component: () => <DeviceResources id={device.useParams().deviceId} />,
});

const deviceRequests = createRoute({
  getParentRoute: () => device,
  path: "/requests",
  validateSearch: paged,
  component: () => (
    <DeviceRequests id={device.useParams().deviceId} page={deviceRequests.useSearch().page} />
  ),
});

const deviceMessages = createRoute({
  getParentRoute: () => device,
  path: "/messages",
  validateSearch: readHistorySearch,
  component: () => (
    <DeviceMessages id={device.useParams().deviceId} search={deviceMessages.useSearch()} />
  ),
});

const deviceSms = createRoute({
  getParentRoute: () => device,
  path: "/sms",
  component: () => <DeviceSms id={device.useParams().deviceId} />,
});

const deviceSettings = createRoute({
  getParentRoute: () => device,
  path: "/settings",
  component: () => <DeviceSettings id={device.useParams().deviceId} />,
});

const deviceLog = createRoute({
  getParentRoute: () => device,
  path: "/log",
  validateSearch: paged,
  component: () => <DeviceLog id={device.useParams().deviceId} page={deviceLog.useSearch().page} />,
});

const newDevice = createRoute({
  getParentRoute: () => root,
  path: "/new-device",
  component: NewDevicePage,
});

const importing = createRoute({
  getParentRoute: () => root,
  path: "/import",
  component: ImportPage,
});

const bulk = createRoute({
  getParentRoute: () => root,
  path: "/bulk",
  validateSearch: readAskedSearch,
  component: () => <BulkPage search={bulk.useSearch()} />,
});

const jobs = createRoute({
  getParentRoute: () => root,
  path: "/jobs",
  validateSearch: paged,
  component: () => <JobsPage page={jobs.useSearch().page ?? 1} />,
});

const job = createRoute({
  getParentRoute: () => root,
  path: "/jobs/$jobId",
  validateSearch: paged,
  component: () => <JobPage id={job.useParams().jobId} page={job.useSearch().page ?? 1} />,
});

const campaigns = createRoute({
  getParentRoute: () => root,
  path: "/firmware",
  validateSearch: paged,
  component: () => <CampaignsPage page={campaigns.useSearch().page ?? 1} />,
});

const images = createRoute({
  getParentRoute: () => root,
  path: "/firmware/images",
  validateSearch: paged,
  component: () => <ImagesPage page={images.useSearch().page ?? 1} />,
});

const campaign = createRoute({
  getParentRoute: () => root,
  path: "/firmware/campaigns/$campaignId",
  validateSearch: paged,
  component: function OneCampaign() {
    const { campaignId } = campaign.useParams();
    return <CampaignPage id={campaignId} page={campaign.useSearch().page ?? 1} />;
  },
});

const newCampaign = createRoute({
  getParentRoute: () => root,
  path: "/new-campaign",
  validateSearch: readAskedSearch,
  component: () => <NewCampaignPage search={newCampaign.useSearch()} />,
});

const schedules = createRoute({
  getParentRoute: () => root,
  path: "/schedules",
  validateSearch: paged,
  component: () => <SchedulesPage page={schedules.useSearch().page ?? 1} />,
});

const schedule = createRoute({
  getParentRoute: () => root,
  path: "/schedules/$scheduleId",
  component: () => <SchedulePage id={schedule.useParams().scheduleId} />,
});

const newSchedule = createRoute({
  getParentRoute: () => root,
  path: "/new-schedule",
  validateSearch: readAskedSearch,
  component: () => <NewSchedulePage search={newSchedule.useSearch()} />,
});

const requests = createRoute({
  getParentRoute: () => root,
  path: "/requests",
  validateSearch: readRequestSearch,
  component: () => <RequestsPage search={requests.useSearch()} />,
});

const request = createRoute({
  getParentRoute: () => root,
  path: "/requests/$requestId",
  component: () => <RequestPage id={request.useParams().requestId} />,
});

const log = createRoute({
  getParentRoute: () => root,
  path: "/log",
  validateSearch: readLogSearch,
  component: () => <LogPage search={log.useSearch()} />,
});

const entry = createRoute({
  getParentRoute: () => root,
  path: "/log/$entryId",
  component: () => <EntryPage id={entry.useParams().entryId} />,
});

const integrations = createRoute({
  getParentRoute: () => root,
  path: "/integrations",
  component: IntegrationsPage,
});

const newIntegration = createRoute({
  getParentRoute: () => root,
  path: "/integrations/$kind/new",
  component: () => <NewIntegrationPage {...newIntegration.useParams()} />,
});

const integration = createRoute({
  getParentRoute: () => root,
  path: "/integrations/$kind/$id",
  component: () => <IntegrationPage {...integration.useParams()} />,
});

const settings = createRoute({
  getParentRoute: () => root,
  path: "/settings",
  component: SettingsPage,
});

const customers = createRoute({
  getParentRoute: () => root,
  path: "/customers",
  validateSearch: paged,
  component: () => <CustomersPage page={customers.useSearch().page ?? 1} />,
});

const customer = createRoute({
  getParentRoute: () => root,
  path: "/customers/$customerId",
  component: () => <CustomerPage id={customer.useParams().customerId} />,
});

const network = createRoute({
  getParentRoute: () => root,
  path: "/network",
  component: NetworkPage,
});

const health = createRoute({
  getParentRoute: () => root,
  path: "/health",
  component: HealthPage,
});

const strangers = createRoute({
  getParentRoute: () => root,
  path: "/unknown-senders",
  validateSearch: paged,
  component: () => <StrangersPage page={strangers.useSearch().page ?? 1} />,
});

const tree = root.addChildren([
  home,
  devices,
  device.addChildren([
    deviceOverview,
    deviceResources,
    deviceRequests,
    deviceMessages,
    deviceSms,
    deviceLog,
    deviceSettings,
  ]),
  newDevice,
  importing,
  bulk,
  jobs,
  job,
  campaigns,
  images,
  campaign,
  newCampaign,
  schedules,
  schedule,
  newSchedule,
  requests,
  request,
  log,
  entry,
  integrations,
  newIntegration,
  integration,
  settings,
  customers,
  customer,
  network,
  strangers,
  health,
]);

export function routerWith(queries: QueryClient) {
  return createRouter({
    routeTree: tree,
    basepath: "/console",
    context: { queries },
    scrollRestoration: true,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof routerWith>;
  }
}
