/** Result rows, rendered as far as visible, and saved as CSV or JSON. */

import { ArrowDownTrayIcon } from '@heroicons/react/24/outline';
import { Button, Group, Stack, Text } from '@mantine/core';
import { useCallback } from 'react';
import type { DatabaseQueryResult } from '../../../../../sdk/index.ts';
import { saveText } from '../../../parts/commands/copy.tsx';
import { SightTable } from '../../../parts/grids/sight-table.tsx';
import { queriesText as words } from '../../../texts/queries-text.ts';
import { asCsv, asJson, cellText } from './result-text.ts';

interface ResultGridProps {
  readonly result: DatabaseQueryResult;
  /** Number of rows before this page, for row numbers. */
  readonly skip?: number;
  /** Other pages follow, so no row is missing. */
  readonly isPaged?: boolean;
}

export function ResultGrid({ result, skip = 0, isPaged = false }: ResultGridProps) {
  const { columns, rows, affected, truncated, elapsed_ms } = result;
  const counted = words.rows(rows.length);
  const facts = [
    columns.length === 0 ? null : counted,
    affected === null ? null : words.changed(affected),
    words.took(elapsed_ms.toFixed(elapsed_ms < 10 ? 1 : 0)),
  ].filter((fact) => fact !== null);
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Text size="sm" c="dimmed" role="status">
          {facts.join(' · ')}
        </Text>
        {rows.length > 0 && (
          <Group gap={4}>
            <Save
              label={words.csv}
              title={words.csvLead}
              name="result.csv"
              type="text/csv"
              content={() => asCsv(result)}
            />
            <Save
              label={words.json}
              name="result.json"
              type="application/json"
              content={() => asJson(result)}
            />
          </Group>
        )}
      </Group>
      {truncated && !isPaged && <Text size="sm">{words.truncated}</Text>}
      {rows.length > 0 ? (
        <Grid result={result} skip={skip} />
      ) : (
        affected === null && <Text>{words.noRows}</Text>
      )}
    </Stack>
  );
}

interface SaveProps {
  readonly label: string;
  readonly title?: string;
  readonly name: string;
  readonly type: string;
  readonly content: () => string;
}

function Save({ label, title, name, type, content }: SaveProps) {
  return (
    <Button
      size="compact-sm"
      variant="default"
      title={title}
      leftSection={<ArrowDownTrayIcon width={16} />}
      onClick={() => saveText({ name, type, content: content() })}
    >
      {label}
    </Button>
  );
}

function Grid({ result: { columns, rows }, skip }: Required<Pick<ResultGridProps, 'result' | 'skip'>>) {
  const textAt = useCallback(
    (row: number, column: number) => {
      const value = rows[row]?.[column];
      return value === null || value === undefined ? null : cellText(value);
    },
    [rows],
  );
  return (
    <SightTable
      label={words.result}
      columns={columns}
      rowCount={rows.length}
      textAt={textAt}
      nothing={words.null}
      numbers={{ name: words.number, first: skip + 1 }}
    />
  );
}
