/** What all accounts together were charged in a month. */
import { Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { Figures } from '../../parts/figures.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayCredits } from '../../parts/price.ts';
import { text } from '../../texts/text.ts';
import { DayBars } from '../billing/day-bars.tsx';
import { thisMonth } from '../billing/month.ts';
import { MonthSelect } from '../billing/month-select.tsx';
import { revenueQuery } from './queries.ts';

const words = text.administration.revenue;
const AMOUNTS = ['total', 'compute', 'storage', 'egress', 'databases', 'written_off'] as const;

export function Revenue() {
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
                <DayBars days={daily.map(({ date, total: cost }) => ({ date, cost }))} />
              </section>
            )}
          </Stack>
        )}
      </Loaded>
    </Stack>
  );
}
