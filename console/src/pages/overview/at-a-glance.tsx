/** What there is, and what it costs. Nothing while there is nothing. */
import { Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Figures } from '../../parts/figures.tsx';
import { AnchorLink } from '../../parts/links.tsx';
import { sayCredits, sayPrice } from '../../parts/price.ts';
import { sayBytes, sayCount } from '../../parts/size.ts';
import { text } from '../../texts/text.ts';
import { estimateQuery } from '../billing/queries.ts';
import { databasesQuery } from '../databases/queries.ts';
import { vmsQuery } from '../machines/queries.ts';
import { bucketsQuery } from '../storage/queries.ts';

const words = text.overview.glance;
const { areas } = text.shell;

export function AtAGlance() {
  const { data: buckets = [] } = useQuery(bucketsQuery);
  const { data: machines = [] } = useQuery(vmsQuery);
  const { data: databases = [] } = useQuery(databasesQuery);
  const { data: estimate } = useQuery(estimateQuery);
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
        ]}
      />
    </section>
  );
}
