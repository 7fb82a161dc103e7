/**
 * The operator's page: status, accounts, invitations, machines, plans, prices, revenue, images,
 * maintenance.
 */
import { Alert, Stack, Tabs, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { Loaded, Page } from '../../parts/page.tsx';
import classes from '../../parts/parts.module.css';
import { sayCredits } from '../../parts/say.ts';
import { Figures } from '../../parts/tables/facts.tsx';
import { accountQuery } from '../../queries.ts';
import { text } from '../../texts/text.ts';
import { DayBars, MonthSelect } from '../billing/month-select.tsx';
import { thisMonth } from '../billing/queries.ts';
import { Accounts } from './accounts.tsx';
import { AllMachines } from './all-machines.tsx';
import { Audit } from './audit.tsx';
import { Images } from './images.tsx';
import { Invitations } from './invitations.tsx';
import { Nodes } from './nodes.tsx';
import { Plans } from './plans.tsx';
import { isCluster, nodesQuery, revenueQuery, TABS, type Tab } from './queries.ts';
import { SetPrices } from './set-prices.tsx';
import { Status } from './status/status.tsx';
import { Upkeep } from './upkeep.tsx';

const PANELS = {
  status: Status,
  accounts: Accounts,
  invitations: Invitations,
  machines: AllMachines,
  plans: Plans,
  prices: SetPrices,
  revenue: Revenue,
  images: Images,
  upkeep: Upkeep,
  audit: Audit,
  nodes: Nodes,
};

export function AdministrationPage() {
  const { tab = 'status' } = useSearch({ from: '/shell/administration' });
  const navigate = useNavigate({ from: '/administration' });
  const { data: account } = useQuery(accountQuery);
  const { data: nodes } = useQuery(nodesQuery);
  const shown = TABS.filter((name) => name !== 'nodes' || tab === 'nodes' || isCluster(nodes));
  const Panel = PANELS[tab];
  return (
    <Page title={text.administration.title}>
      {account?.is_auditor === true && (
        <Alert mb="md" variant="light">
          {text.administration.auditorLead}
        </Alert>
      )}
      <Tabs
        value={tab}
        keepMounted={false}
        onChange={(to) => navigate({ search: to === 'status' ? {} : { tab: to as Tab } })}
      >
        <Tabs.List className={classes.tabList ?? ''}>
          {shown.map((name) => (
            <Tabs.Tab key={name} value={name}>
              {text.administration.tabs[name]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value={tab}>
          <Panel />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

/** Charges of all accounts in a month. */
const words = text.administration.revenue;
const AMOUNTS = ['total', 'compute', 'storage', 'egress', 'databases', 'written_off'] as const;

function Revenue() {
  const { month = thisMonth() } = useSearch({ from: '/shell/administration' });
  const navigate = useNavigate({ from: '/administration' });
  const revenue = useQuery(revenueQuery(month));
  return (
    <Stack gap="lg">
      <Text c="dimmed">{words.lead}</Text>
      <MonthSelect
        value={month}
        onChange={(value) => navigate({ search: { tab: 'revenue', month: value } })}
      />
      <Loaded query={revenue}>
        {({ total, daily }) => (
          <Stack gap="xl">
            <Figures
              figures={AMOUNTS.map((amount) => ({ name: words[amount], value: sayCredits(total[amount]) }))}
            />
            {Number(total.total) === 0 ? (
              <Text c="dimmed">{words.none}</Text>
            ) : (
              <section>
                <Title order={2} mb="sm">
                  {text.billing.daily}
                </Title>
                <DayBars days={daily.map(({ total: cost, ...day }) => ({ ...day, cost }))} />
              </section>
            )}
          </Stack>
        )}
      </Loaded>
    </Stack>
  );
}
