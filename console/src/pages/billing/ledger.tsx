/** Every change of the balance by day, newest first. */
import { Button, Stack, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Loaded } from '../../parts/page.tsx';
import { text } from '../../texts/text.ts';
import { DayTable } from './day-table.tsx';
import { daysOf } from './ledger-days.ts';
import { ledgerQuery } from './queries.ts';

export function Ledger() {
  const ledger = useInfiniteQuery(ledgerQuery);
  return (
    <Loaded query={ledger}>
      {({ pages }) => {
        const days = daysOf(pages.flatMap(({ items }) => items));
        // The sums of the oldest day are not known before all of it was read.
        const whole = ledger.hasNextPage ? days.slice(0, -1) : days;
        if (days.length === 0) return <Text c="dimmed">{text.billing.noEntries}</Text>;
        return (
          <Stack>
            <Text c="dimmed">{text.billing.ledgerLead}</Text>
            <DayTable days={whole} />
            {ledger.hasNextPage && (
              <Button
                variant="default"
                loading={ledger.isFetchingNextPage}
                onClick={() => ledger.fetchNextPage()}
              >
                {text.shell.more}
              </Button>
            )}
          </Stack>
        );
      }}
    </Loaded>
  );
}
