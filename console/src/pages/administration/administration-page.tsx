/** What an operator of the cloud looks after. */
import { Tabs } from '@mantine/core';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { Page } from '../../parts/page.tsx';
import tabs from '../../parts/page-tabs.module.css';
import { text } from '../../texts/text.ts';
import { Accounts } from './accounts.tsx';
import { AllMachines } from './all-machines.tsx';
import { Images } from './images.tsx';
import { Plans } from './plans.tsx';
import { Revenue } from './revenue.tsx';
import { SetPrices } from './set-prices.tsx';
import { Status } from './status.tsx';
import { TABS, type Tab } from './tabs.ts';
import { Upkeep } from './upkeep.tsx';

const PANELS = {
  status: Status,
  accounts: Accounts,
  machines: AllMachines,
  plans: Plans,
  prices: SetPrices,
  revenue: Revenue,
  images: Images,
  upkeep: Upkeep,
};

export function AdministrationPage() {
  const { tab = 'status' } = useSearch({ from: '/shell/administration' });
  const navigate = useNavigate({ from: '/administration' });
  const Panel = PANELS[tab];
  return (
    <Page title={text.administration.title}>
      <Tabs
        value={tab}
        keepMounted={false}
        onChange={(to) => navigate({ search: to === 'status' ? {} : { tab: to as Tab } })}
      >
        <Tabs.List className={tabs.list ?? ''}>
          {TABS.map((name) => (
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
