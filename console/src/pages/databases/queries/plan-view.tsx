/** The plan of a statement, as a tree: the longest bar marks the step with most of its time or cost. */
import { Button, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { DatabasePlan, DatabasePlanStep, DatabaseQuery } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { Loaded } from '../../../parts/page.tsx';
import { queriesText as words } from '../../../texts/queries-text.ts';
import classes from './plan.module.css';

interface PlanViewProps {
  readonly id: string;
  readonly asked: Pick<DatabaseQuery, 'statement' | 'command'>;
}

export function PlanView({ id, asked }: PlanViewProps) {
  const [measure, setMeasure] = useState(false);
  const plan = useQuery({
    queryKey: ['query-plans', id, asked, measure],
    queryFn: ({ signal }) => cloud.explainDatabaseQuery(id, { ...asked, measure }, { signal }),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  return (
    <Stack component="section" aria-label={words.plan} gap="xs">
      <Group>
        {measure ? (
          plan.data !== undefined && (
            <Text size="sm">{plan.data.measured ? words.measured : words.notMeasured}</Text>
          )
        ) : (
          <Button size="compact-sm" variant="default" onClick={() => setMeasure(true)}>
            {words.measure}
          </Button>
        )}
      </Group>
      <Loaded query={plan}>{({ steps }) => <Tree steps={steps} />}</Loaded>
    </Stack>
  );
}

interface Node {
  readonly step: DatabasePlanStep;
  readonly at: number;
  readonly below: Node[];
}

function treeOf(steps: DatabasePlan['steps']): Node[] {
  const whole: Node[] = [];
  const open: Node[] = [];
  for (const [at, step] of steps.entries()) {
    const node = { step, at, below: [] };
    open.length = Math.min(open.length, step.depth);
    (open.at(-1)?.below ?? whole).push(node);
    open.push(node);
  }
  return whole;
}

/** Time where it was measured, else cost, else rows. */
function weightOf({ time_ms, cost, actual_rows, estimated_rows }: DatabasePlanStep): number {
  return time_ms ?? cost ?? actual_rows ?? estimated_rows ?? 0;
}

function Tree({ steps }: Pick<DatabasePlan, 'steps'>) {
  const most = Math.max(...steps.map(weightOf), 0);
  return (
    <div className={classes.plan}>
      <Branches nodes={treeOf(steps)} most={most} />
    </div>
  );
}

function Branches({ nodes, most }: { readonly nodes: readonly Node[]; readonly most: number }) {
  return (
    <ul className={classes.branches}>
      {nodes.map(({ step, at, below }) => (
        <li key={at}>
          <Step step={step} share={most === 0 ? 0 : weightOf(step) / most} />
          {below.length > 0 && <Branches nodes={below} most={most} />}
        </li>
      ))}
    </ul>
  );
}

function figuresOf({ estimated_rows, actual_rows, cost, time_ms }: DatabasePlanStep): string {
  const short = (value: number) => String(Number(value.toPrecision(3)));
  return [
    actual_rows === null ? null : words.actual(actual_rows),
    estimated_rows === null ? null : words.estimated(estimated_rows),
    time_ms === null ? null : words.milliseconds(short(time_ms)),
    cost === null ? null : words.cost(short(cost)),
  ]
    .filter((figure) => figure !== null)
    .join(' · ');
}

function Step({ step, share }: { readonly step: DatabasePlanStep; readonly share: number }) {
  const { operation, on, details } = step;
  const figures = figuresOf(step);
  const line = (
    <>
      <strong>{operation}</strong>
      {on !== null && <span className="mono"> {on}</span>}
      {figures !== '' && <span className={classes.figures}> {figures}</span>}
    </>
  );
  return (
    <div className={classes.step}>
      {details.length === 0 ? (
        <div>{line}</div>
      ) : (
        <details>
          <summary aria-label={`${operation} ${on ?? ''} ${figures}`}>{line}</summary>
          <dl className={classes.details}>
            {details.map(({ name, value }) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd className="mono">{value}</dd>
              </div>
            ))}
          </dl>
        </details>
      )}
      {share > 0 && (
        <div className={classes.bar} aria-hidden>
          <div style={{ width: `${Math.max(1, share * 100)}%` }} />
        </div>
      )}
    </div>
  );
}
