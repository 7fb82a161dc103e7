/** Recovery points: list, readiness and schedule. */

import { LifebuoyIcon } from '@heroicons/react/24/outline';
import { Button, Stack } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import type { Result } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { Prose } from '../../parts/commands/code.tsx';
import { Warning } from '../../parts/forms/warning.tsx';
import { showDone } from '../../parts/notices.tsx';
import { Empty, Loaded, Page } from '../../parts/page.tsx';
import { sayBytes, sayCount } from '../../parts/say.ts';
import { Figures } from '../../parts/tables/facts.tsx';
import { When } from '../../parts/tables/when.tsx';
import { recoveryText } from '../../texts/pages/recovery-text.ts';
import { text } from '../../texts/text.ts';
import { PointTable } from './point-table.tsx';
import { isBusy, pointsQuery, RECOVERY, statusQuery } from './queries.ts';
import { Protection } from './schedule-panel.tsx';

type Status = Result<'getSystemStatus'>['components']['recovery'];

export function RecoveryPage() {
  const points = useQuery(pointsQuery);
  const status = useQuery(statusQuery);
  const meta = { invalidates: [RECOVERY] };
  const create = useMutation({
    // Not awaited: the list shows the progress.
    mutationFn: () => cloud.createRecoveryPoint({ wait: 0 }),
    meta,
  });
  const check = useMutation({
    mutationFn: () => cloud.checkRecoveryTarget(),
    meta,
    onSuccess: ({ points: found, freed_bytes: freed }) =>
      showDone(recoveryText.checked(found, sayBytes(freed))),
  });
  const isTaking = points.data?.some(({ state }) => state === 'creating') ?? false;
  const takeButton = (
    <Button loading={create.isPending} disabled={isTaking} onClick={() => create.mutate()}>
      {isTaking ? text.recovery.taking : text.recovery.create}
    </Button>
  );
  const checkButton = (
    <Button variant="default" loading={check.isPending} onClick={() => check.mutate()}>
      {recoveryText.check}
    </Button>
  );
  return (
    <Page
      title={recoveryText.title}
      lead={recoveryText.lead}
      actions={
        <>
          {points.data?.length !== 0 && checkButton}
          {takeButton}
        </>
      }
    >
      <Stack gap="xl">
        <Loaded query={status}>{(now) => <Readiness status={now} />}</Loaded>
        <Loaded query={points}>
          {(all) =>
            all.length === 0 ? (
              <Empty icon={LifebuoyIcon} title={recoveryText.none} action={takeButton}>
                {recoveryText.noneLead}
              </Empty>
            ) : (
              <PointTable points={all.toReversed()} isBusy={all.some(isBusy)} />
            )
          }
        </Loaded>
        <Loaded query={status}>{(now) => <Protection status={now} />}</Loaded>
      </Stack>
    </Page>
  );
}

/** Warnings that would hinder a restore now, and the points to restore from. */
function Readiness({ status }: { status: Status }) {
  return (
    <Stack>
      {status.warnings.length > 0 && (
        <Warning title={recoveryText.warnings}>
          <Stack gap="xs">
            {status.warnings.map(({ code, detail, fix }) => (
              <div key={code}>
                <Prose>{detail}</Prose>.
                <br />
                {recoveryText.fix}: <span className="mono">{fix}</span>
              </div>
            ))}
          </Stack>
        </Warning>
      )}
      {status.points > 0 && (
        <Figures
          figures={[
            { name: recoveryText.newest, value: <When at={status.newest_at} /> },
            { name: recoveryText.verified, value: <When at={status.verified_at} /> },
            { name: recoveryText.points, value: sayCount(status.points) },
            ...(status.free_bytes === null
              ? []
              : [{ name: recoveryText.free, value: sayBytes(status.free_bytes) }]),
          ]}
        />
      )}
    </Stack>
  );
}
