/** Charts of a database: size, connections, statements, rows. */

import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { Database, DatabaseMetricsEntry } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { type Figure, HistoryCharts } from '../../parts/charts/history-charts.tsx';
import { gauge, rate, readingsFor, type Series, SPANS, spanQuery } from '../../parts/charts/steps.ts';
import { sayBytes } from '../../parts/say.ts';
import { readerLocales } from '../../texts/reader-locales.ts';
import { text } from '../../texts/text.ts';

const words = text.databases.charts;
const number = new Intl.NumberFormat(readerLocales, { maximumFractionDigits: 1 });
const sayNumber = (value: number) => number.format(value);
const sayRate = (value: number) => `${number.format(value)}/s`;

export function ChartsTab({ database }: { database: Database }) {
  const { database_id: id, created_at: createdAt } = database;
  const { span = 'hour' } = useSearch({ from: '/shell/databases/$database' });
  const navigate = useNavigate({ from: '/databases/$database' });
  const readings = readingsFor(span, createdAt);
  const metrics = useQuery({
    queryKey: ['databases', id, 'metrics', readings],
    queryFn: () => cloud.getDatabaseMetrics(id, spanQuery(readings)),
    refetchInterval: SPANS[readings].refreshMs,
  });
  return (
    <HistoryCharts
      query={metrics}
      span={span}
      readings={readings}
      onSpan={(next) => navigate({ search: (before) => ({ ...before, span: next }), replace: true })}
      words={words}
      figuresOf={figuresOf}
    />
  );
}

function figuresOf(series: Series<DatabaseMetricsEntry>): readonly Figure[] {
  const size = gauge(series, (entry) => entry.size_bytes);
  const connections = gauge(series, (entry) => entry.connections);
  const statements = rate(series, (entry) => entry.statements);
  const rows = [
    { label: words.returned, values: rate(series, (entry) => entry.rows_returned) },
    { label: words.written, values: rate(series, (entry) => entry.rows_written) },
  ];
  return [
    { title: words.size, lines: [{ label: words.taken, values: size }], say: sayBytes, isBinary: true },
    { title: words.connections, lines: [{ label: words.open, values: connections }], say: sayNumber },
    { title: words.statements, lines: [{ label: words.perSecond, values: statements }], say: sayRate },
    { title: words.rowsOut, lines: rows, say: sayRate },
  ];
}
