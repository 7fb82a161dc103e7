/** How the cloud is doing: the host's load, and for administrators what needs them. */
import { Group, Progress, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Loaded } from '../../parts/page.tsx';
import { text } from '../../texts/text.ts';
import classes from './overview-page.module.css';
import { statusQuery } from './queries.ts';

export function CloudStatus({ isAdmin }: { isAdmin: boolean }) {
  const status = useQuery(statusQuery);
  return (
    <section aria-labelledby="status">
      <Loaded query={status}>
        {({ status: state, metrics, alarms, version, components }) => (
          <>
            <Group justify="space-between" align="baseline">
              <Title order={2} id="status">
                {text.overview.status}
              </Title>
              <Text size="sm" c="dimmed">
                {sayState(state, isAdmin ? components.recovery.warnings.length : 0)} · {version}
              </Text>
            </Group>
            <dl className={classes.gauges}>
              <Gauge label={text.overview.processor} percent={metrics.cpu} />
              <Gauge label={text.overview.memory} percent={metrics.memory} />
              <Gauge label={text.overview.disk} percent={metrics.disk} />
            </dl>
            {isAdmin && (
              <ul className={classes.alarms}>
                {[...alarms, ...components.recovery.warnings].map(({ code, detail, fix }) => (
                  <li key={code + detail}>
                    {detail}
                    <br />
                    {text.administration.fix}: {fix}
                  </li>
                ))}
              </ul>
            )}
          </>
        )}
      </Loaded>
    </section>
  );
}

/** `warnings`: what would be in the way if this cloud were lost now; for administrators. */
function sayState(state: 'ok' | 'degraded', warnings: number): string {
  if (state === 'degraded') return text.overview.degraded;
  return warnings === 0 ? text.overview.healthy : text.overview.unprotected;
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
