/** How the credits go down if everything in use stays in use. */
import { Text, Title } from '@mantine/core';
import { useMemo } from 'react';
import { Chart } from '../../parts/chart.tsx';
import { sayCredits } from '../../parts/price.ts';
import { text } from '../../texts/text.ts';

const DAY_SECONDS = 86_400;
/** A chart of years would show a level line. */
const SHOWN_DAYS = 90;
const POINTS = 60;

export function Forecast({ spendable, daysLeft }: { spendable: number; daysLeft: number }) {
  const { times, lines } = useMemo(() => {
    const days = Math.min(SHOWN_DAYS, Math.max(1, daysLeft * 1.1));
    const now = Date.now() / 1000;
    const ahead = Array.from({ length: POINTS + 1 }, (_, point) => (days * point) / POINTS);
    const left = (day: number) => (daysLeft > 0 ? Math.max(0, spendable * (1 - day / daysLeft)) : 0);
    return {
      times: ahead.map((day) => now + day * DAY_SECONDS),
      lines: [{ label: text.billing.spendable, values: ahead.map(left) }],
    };
  }, [spendable, daysLeft]);
  return (
    <section>
      <Title order={2}>{text.billing.forecast}</Title>
      <Text c="dimmed" size="sm" mb="sm">
        {text.billing.forecastLead}
      </Text>
      <Chart label={text.billing.forecast} times={times} lines={lines} say={sayCredits} />
    </section>
  );
}
