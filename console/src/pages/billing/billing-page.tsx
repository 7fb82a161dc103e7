/** Billing: what is in use and what it costs, the report of a month, the ledger, and the prices. */
import { Tabs } from '@mantine/core';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { Page } from '../../parts/page.tsx';
import tabs from '../../parts/page-tabs.module.css';
import { text } from '../../texts/text.ts';
import { Ledger } from './ledger.tsx';
import { Now } from './now.tsx';
import { Prices } from './prices.tsx';
import { Report } from './report.tsx';
import { TABS, type Tab } from './tabs.ts';

const PANELS = { now: Now, report: Report, ledger: Ledger, prices: Prices };

export function BillingPage() {
  const { tab = 'now' } = useSearch({ from: '/shell/billing' });
  const navigate = useNavigate({ from: '/billing' });
  return (
    <Page title={text.billing.title} lead={text.billing.lead}>
      <Tabs
        value={tab}
        keepMounted={false}
        onChange={(to) => navigate({ search: to === 'now' ? {} : { tab: to as Tab } })}
      >
        <Tabs.List className={tabs.list ?? ''}>
          {TABS.map((name) => (
            <Tabs.Tab key={name} value={name}>
              {text.billing.tabs[name]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {TABS.map((name) => {
          const Panel = PANELS[name];
          return (
            <Tabs.Panel key={name} value={name}>
              <Panel />
            </Tabs.Panel>
          );
        })}
      </Tabs>
    </Page>
  );
}
