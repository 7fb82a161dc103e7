/** Result rows, rendered as far as visible, and saved as CSV or JSON. */

import { ArrowDownTrayIcon } from '@heroicons/react/24/outline';
import { Button, Group, Stack, Text, VisuallyHidden } from '@mantine/core';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useRef } from 'react';
import type { DatabaseQueryResult } from '../../../../../sdk/index.ts';
import { saveText } from '../../../parts/commands/copy.tsx';
import { queriesText as words } from '../../../texts/queries-text.ts';
import classes from '../databases.module.css';
import { asCsv, asJson, cellText } from './result-text.ts';

const ROW_HEIGHT = 30;
const ROWS_BEYOND = 12;

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
  const box = useRef<HTMLElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: ROWS_BEYOND,
  });
  const seen = virtual.getVirtualItems();
  const above = seen[0]?.start ?? 0;
  const below = virtual.getTotalSize() - (seen.at(-1)?.end ?? 0);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
    <section ref={box} className={classes.resultBox} tabIndex={0} aria-label={words.result}>
      <table className={classes.grid} aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            <th className={classes.number}>
              <VisuallyHidden>{words.number}</VisuallyHidden>
            </th>
            {columns.map(({ name, type }, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a result may have two columns of one name
              <th key={index} scope="col" title={type ?? ''}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Spacer height={above} />
          {seen.map(({ index }) => (
            <tr key={index} aria-rowindex={index + 2}>
              <td className={classes.number}>{skip + index + 1}</td>
              {rows[index]?.map((cell, column) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: as above
                <td key={column} data-null={cell === null || undefined} title={cellText(cell)}>
                  {cell === null ? words.null : cellText(cell)}
                </td>
              ))}
            </tr>
          ))}
          <Spacer height={below} />
        </tbody>
      </table>
    </section>
  );
}

function Spacer({ height }: { height: number }) {
  return height > 0 ? <tr aria-hidden style={{ height }} /> : null;
}
