/** When recovery points are created and how many are kept; before that, the steps that make a cloud safe. */
import { CheckIcon } from '@heroicons/react/24/outline';
import { Button, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import type { RecoverySchedule, Result } from '../../../../sdk/index.ts';
import { CodeLine } from '../../parts/commands/code.tsx';
import { Warning } from '../../parts/forms/warning.tsx';
import { Loaded } from '../../parts/page.tsx';
import { Facts } from '../../parts/tables/facts.tsx';
import { When } from '../../parts/tables/when.tsx';
import { scheduleText as words } from '../../texts/pages/schedule-text.ts';
import { scheduleQuery } from './queries.ts';
import classes from './recovery.module.css';
import { RecoveryKey } from './recovery-key.tsx';
import { ScheduleForm } from './schedule-form.tsx';

type Status = Result<'getSystemStatus'>['components']['recovery'];

const SETTING = 'CLOUDLET_RECOVERY_TARGET=/mnt/backup/cloudlet';

export function Protection({ status }: { status: Status }) {
  const schedule = useQuery(scheduleQuery);
  const [isEditing, setEditing] = useState(false);
  const edit = () => setEditing(true);
  return (
    <Loaded query={schedule}>
      {(now) => (
        <>
          <FirstRun status={status} schedule={now} onEdit={edit} />
          <Panel schedule={now} onEdit={edit} />
          {status.key_taken === true && <RecoveryKey isTaken />}
          {isEditing && <ScheduleForm present={now} onClose={() => setEditing(false)} />}
        </>
      )}
    </Loaded>
  );
}

interface PartProps {
  readonly schedule: RecoverySchedule;
  readonly onEdit: () => void;
}

/** Hidden once everything is done. */
function FirstRun({ status, schedule, onEdit }: PartProps & { status: Status }) {
  const { steps } = words;
  const hasTarget = status.on_data_disk === false;
  const hasSchedule = schedule.every !== 'off' && !schedule.is_default;
  const hasKey = status.key_taken === true;
  if (hasTarget && hasSchedule && hasKey) return null;
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="protect">
      <Title order={2} id="protect">
        {words.first}
      </Title>
      <Text c="dimmed">{words.firstLead}</Text>
      <ol className={classes.steps}>
        <Step isDone={hasTarget} said={hasTarget ? steps.targetDone : steps.target}>
          {!hasTarget && (
            <>
              <Text size="sm">{words.targetHow}</Text>
              <CodeLine value={SETTING} label={words.copySetting} />
            </>
          )}
        </Step>
        <Step isDone={hasSchedule} said={hasSchedule ? steps.scheduleDone : steps.schedule}>
          {!hasSchedule && (
            <Button variant="default" size="xs" onClick={onEdit}>
              {words.turnOn}
            </Button>
          )}
        </Step>
        <Step isDone={hasKey} said={hasKey ? steps.keyDone : steps.key}>
          {!hasKey && <RecoveryKey isTaken={status.key_taken} isPart />}
        </Step>
      </ol>
    </Paper>
  );
}

interface StepProps {
  readonly isDone: boolean;
  /** Name, and a sentence. */
  readonly said: readonly string[];
  readonly children: ReactNode;
}

function Step({ isDone, said: [name, lead], children }: StepProps) {
  return (
    <li className={classes.step} data-done={isDone}>
      <span className={classes.mark} aria-hidden>
        {isDone && <CheckIcon width={14} />}
      </span>
      <div className={classes.said}>
        <Text fw={550}>{name}</Text>
        <Text size="sm" c="dimmed">
          {lead}
        </Text>
        {children}
      </div>
    </li>
  );
}

function Panel({ schedule, onEdit }: PartProps) {
  const { every, at, weekday, next_at: next, last_at: last, failures, failed_reason: reason } = schedule;
  const facts = [
    { name: words.when, value: words.rhythm[every](at, words.weekdays[weekday]) },
    { name: words.keeps, value: sayKeep(schedule.keep) },
    { name: words.next, value: schedule.making_point_id === null ? <When at={next} /> : words.nextNow },
    { name: words.last, value: <When at={last} /> },
  ];
  return (
    <section>
      <Group justify="space-between" mb="xs">
        <Title order={2}>{words.title}</Title>
        <Button variant="default" onClick={onEdit}>
          {words.edit}
        </Button>
      </Group>
      <Stack gap="xs">
        {failures > 0 && (
          <Warning isError title={words.failed(failures)}>
            {reason}. {words.failedNext}
          </Warning>
        )}
        {every === 'off' ? <Text c="dimmed">{words.off}</Text> : <Facts facts={facts} />}
        {schedule.is_default && every !== 'off' && (
          <Text size="sm" c="dimmed">
            {words.byDefault}
          </Text>
        )}
      </Stack>
    </section>
  );
}

function sayKeep(keep: RecoverySchedule['keep']): string {
  const rules = Object.keys(words.kept) as (keyof typeof words.kept)[];
  return rules.flatMap((rule) => (keep[rule] > 0 ? [words.kept[rule](keep[rule])] : [])).join(', ');
}
