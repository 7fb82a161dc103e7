/** The start page: first steps, resources and the state of the cloud. */
import { Group, Progress, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { CreditWarning } from '../../parts/credit-warning.tsx';
import { Warning } from '../../parts/forms/warning.tsx';
import { Loaded, Page } from '../../parts/page.tsx';
import { sayBytes, sayCount, sayCredits, sayPrice } from '../../parts/say.ts';
import { SpendWarning } from '../../parts/spend-warning.tsx';
import { Figures } from '../../parts/tables/facts.tsx';
import { AnchorLink } from '../../parts/tables/links.tsx';
import { accountQuery, statusQuery } from '../../queries.ts';
import { overviewText } from '../../texts/pages/overview-text.ts';
import { text } from '../../texts/text.ts';
import { estimateQuery } from '../billing/queries.ts';
import { useMonthCost } from '../billing/use-month-cost.ts';
import { databasesQuery } from '../databases/queries/queries.ts';
import { vmsQuery } from '../machines/queries.ts';
import { bucketsQuery } from '../storage/queries.ts';
import { FirstSteps } from './first-steps.tsx';
import classes from './overview-page.module.css';
import { Recent } from './recent.tsx';

export function OverviewPage() {
  const { data: account } = useQuery(accountQuery);
  const isAdmin = account?.is_admin === true;
  return (
    <Page title={account === undefined ? overviewText.title : overviewText.hello(account.username)}>
      <Stack gap={40}>
        <CreditWarning />
        <SpendWarning />
        {isAdmin && <Alerts />}
        {account !== undefined && <FirstSteps isAdmin={isAdmin} accountId={account.id} />}
        <AtAGlance />
        <Recent />
        <CloudStatus isAdmin={isAdmin} />
      </Stack>
    </Page>
  );
}

const words = overviewText.glance;
const { areas } = text.shell;

/** Faults of the cloud, and obstacles to a full restore; for administrators. */
function Alerts() {
  const { data: status } = useQuery(statusQuery);
  const all = status === undefined ? [] : [...status.alarms, ...status.components.recovery.warnings];
  if (all.length === 0) return null;
  return (
    <Warning title={status?.status === 'degraded' ? overviewText.degraded : overviewText.unprotectedTitle}>
      <ul className={classes.alarms}>
        {all.map(({ code, detail, fix }) => (
          <li key={code + detail}>
            {detail}
            <br />
            {text.administration.fix}: {fix}
          </li>
        ))}
      </ul>
    </Warning>
  );
}

/** Buckets, machines, databases, credits and the cost of the month; hidden if there are none. */
function AtAGlance() {
  const { data: buckets = [] } = useQuery(bucketsQuery);
  const { data: machines = [] } = useQuery(vmsQuery);
  const { data: databases = [] } = useQuery(databasesQuery);
  const { data: estimate } = useQuery(estimateQuery);
  const month = useMonthCost();
  if (buckets.length + machines.length + databases.length === 0) return null;
  const running = machines.filter(({ state }) => state === 'running').length;
  const stored = buckets.reduce((sum, { total_size }) => sum + total_size, 0);
  const bytes = databases.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
  return (
    <section aria-labelledby="glance">
      <Title order={2} id="glance" mb="sm">
        {words.title}
      </Title>
      <Figures
        figures={[
          {
            name: <AnchorLink to="/storage">{areas.storage}</AnchorLink>,
            value: sayBytes(stored),
            note: words.inBuckets(buckets.length),
          },
          {
            name: <AnchorLink to="/machines">{areas.machines}</AnchorLink>,
            value: sayCount(machines.length),
            note: words.running(running),
          },
          {
            name: <AnchorLink to="/databases">{areas.databases}</AnchorLink>,
            value: sayCount(databases.length),
            note: words.take(sayBytes(bytes)),
          },
          {
            name: <AnchorLink to="/billing">{text.billing.spendable}</AnchorLink>,
            value: estimate === undefined ? '–' : sayCredits(estimate.spendable),
            note: estimate && words.perHour(sayPrice(estimate.per_hour)),
          },
          {
            name: (
              <AnchorLink to="/billing" search={{ tab: 'report' }}>
                {words.thisMonth}
              </AnchorLink>
            ),
            ...month,
          },
        ]}
      />
    </section>
  );
}

/** State of the cloud, and the load of the host. */
function CloudStatus({ isAdmin }: { isAdmin: boolean }) {
  const status = useQuery(statusQuery);
  return (
    <section aria-labelledby="status">
      <Loaded query={status}>
        {({ status: state, metrics, version, components }) => (
          <>
            <Group justify="space-between" align="baseline">
              <Title order={2} id="status">
                {overviewText.status}
              </Title>
              <Text size="sm" c="dimmed">
                {sayState(state, isAdmin ? components.recovery.warnings.length : 0)} · {version}
              </Text>
            </Group>
            <dl className={classes.gauges}>
              <Gauge label={overviewText.processor} percent={metrics.cpu} />
              <Gauge label={overviewText.memory} percent={metrics.memory} />
              <Gauge label={overviewText.disk} percent={metrics.disk} />
            </dl>
          </>
        )}
      </Loaded>
    </section>
  );
}

/** `warnings`: problems that would hinder a full restore of this cloud; for administrators. */
function sayState(state: 'ok' | 'degraded', warnings: number): string {
  if (state === 'degraded') return overviewText.degraded;
  return warnings === 0 ? overviewText.healthy : overviewText.unprotected;
}

function Gauge({ label, percent }: { label: string; percent: number | null }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>
        {percent === null ? '–' : `${Math.round(percent)} %`}
        <Progress value={percent ?? 0} size={4} mt={6} aria-label={label} />
      </dd>
    </div>
  );
}
