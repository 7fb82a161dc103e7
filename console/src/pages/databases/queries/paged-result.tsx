/** A result with more rows than the cloud gives at once: pages, each by running the query again. */

import { ChevronLeftIcon, ChevronRightIcon } from '@heroicons/react/24/outline';
import { ActionIcon, Group, Stack, Text } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { DatabaseQuery, DatabaseQueryResult } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { Refused } from '../../../parts/forms/warning.tsx';
import { queriesText as words } from '../../../texts/queries-text.ts';
import { ResultGrid } from './result-grid.tsx';

const KEPT_MS = 60_000;
/** The cloud omits no more rows than this. */
const MAX_SKIP = 100_000;

interface PagedResultProps {
  readonly id: string;
  readonly body: DatabaseQuery;
  readonly first: DatabaseQueryResult;
}

export function PagedResult({ id, body, first }: PagedResultProps) {
  /** Row offsets of the second and later pages. */
  const [starts, setStarts] = useState<readonly number[]>([]);
  const skip = starts.at(-1) ?? 0;
  const { query_id: _, ...asked } = body;
  const page = useQuery({
    // Its key is not below the database's: automatic reloads would move the page under the reader.
    queryKey: ['query-pages', id, asked, skip],
    queryFn: ({ signal }) => cloud.queryDatabase(id, { ...asked, skip }, { signal }),
    enabled: skip > 0,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: KEPT_MS,
    placeholderData: keepPreviousData,
    retry: false,
  });
  const shown = (skip > 0 ? page.data : undefined) ?? first;
  const isPaged = body.read_only !== false && (first.truncated || skip > 0);
  const next = skip + shown.row_count;
  const isBusy = page.isFetching && page.isPlaceholderData;
  return (
    <Stack gap="xs">
      {isPaged && (
        <Group gap="xs" role="group" aria-label={words.pages}>
          <ActionIcon
            variant="default"
            aria-label={words.previous}
            disabled={skip === 0}
            onClick={() => setStarts((before) => before.slice(0, -1))}
          >
            <ChevronLeftIcon width={18} aria-hidden />
          </ActionIcon>
          <ActionIcon
            variant="default"
            aria-label={words.next}
            loading={isBusy}
            disabled={!shown.truncated || shown.row_count === 0 || next > MAX_SKIP}
            onClick={() => setStarts((before) => [...before, next])}
          >
            <ChevronRightIcon width={18} aria-hidden />
          </ActionIcon>
          <Text size="sm" aria-live="polite">
            {words.range(skip + 1, next)}
          </Text>
          <Text size="xs" c="dimmed">
            {words.again}
          </Text>
        </Group>
      )}
      {page.error !== null && skip > 0 && <Refused error={page.error} />}
      <ResultGrid key={skip} result={shown} skip={skip} isPaged={isPaged} />
    </Stack>
  );
}
