/** Five first steps, ticked off when done. */
import {
  ArchiveBoxIcon,
  ArrowUpTrayIcon,
  CheckIcon,
  CircleStackIcon,
  KeyIcon,
  LifebuoyIcon,
  ServerIcon,
} from '@heroicons/react/24/outline';
import { Button, Group, Progress, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ComponentType, ReactNode, SVGProps } from 'react';
import { Refused } from '../../parts/forms/warning.tsx';
import { ButtonLink } from '../../parts/tables/links.tsx';
import { text } from '../../texts/text.ts';
import { ChooseFiles } from '../../uploads/add-files.tsx';
import { accessKeysQuery } from '../account/queries.ts';
import { databasesQuery } from '../databases/queries/queries.ts';
import { vmsQuery } from '../machines/queries.ts';
import { pointsQuery } from '../recovery/queries.ts';
import { bucketsQuery } from '../storage/queries.ts';
import classes from './overview-page.module.css';

interface Step {
  readonly words: readonly string[];
  readonly icon: ComponentType<SVGProps<SVGSVGElement>>;
  readonly isDone: boolean;
  readonly action: ReactNode;
}

export function FirstSteps({ isAdmin }: { isAdmin: boolean }) {
  const buckets = useQuery(bucketsQuery);
  const steps = useSteps(isAdmin);
  const done = steps.filter(({ isDone }) => isDone).length;
  return (
    <section aria-labelledby="first">
      <Group justify="space-between" align="baseline">
        <Title order={2} id="first">
          {text.overview.first}
        </Title>
        <Text size="sm" c="dimmed">
          {text.overview.doneCount(done, steps.length)}
        </Text>
      </Group>
      <Progress value={(done / steps.length) * 100} size={4} my="xs" aria-label={text.overview.first} />
      <Refused error={buckets.error} onRetry={() => buckets.refetch()} />
      {done < steps.length && (
        <ol className={classes.steps}>
          {steps.map((step) => (
            <StepRow key={step.words[0]} step={step} />
          ))}
        </ol>
      )}
    </section>
  );
}

function useSteps(isAdmin: boolean): readonly Step[] {
  const { data: buckets = [] } = useQuery(bucketsQuery);
  const { data: machines = [] } = useQuery(vmsQuery);
  const { data: databases = [] } = useQuery(databasesQuery);
  const { data: keys = [] } = useQuery(accessKeysQuery);
  const { data: points = [] } = useQuery({ ...pointsQuery, enabled: isAdmin });
  const { steps } = text.overview;
  const all: Step[] = [
    {
      words: steps.upload,
      icon: ArchiveBoxIcon,
      isDone: buckets.some(({ version_count }) => version_count > 0),
      action: <ChooseFile />,
    },
    {
      words: steps.machine,
      icon: ServerIcon,
      isDone: machines.length > 0,
      action: (
        <ButtonLink to="/machines/new" variant="default">
          {text.machines.create}
        </ButtonLink>
      ),
    },
    {
      words: steps.database,
      icon: CircleStackIcon,
      isDone: databases.length > 0,
      action: (
        <ButtonLink to="/databases/new" variant="default">
          {text.databases.create}
        </ButtonLink>
      ),
    },
    {
      words: steps.key,
      icon: KeyIcon,
      isDone: keys.length > 0,
      action: (
        <ButtonLink to="/storage/s3" variant="default">
          {text.storage.openS3}
        </ButtonLink>
      ),
    },
    {
      words: steps.point,
      icon: LifebuoyIcon,
      isDone: points.length > 0,
      action: (
        <ButtonLink to="/recovery" variant="default">
          {text.overview.openRecovery}
        </ButtonLink>
      ),
    },
  ];
  return isAdmin ? all : all.slice(0, -1);
}

function StepRow({ step: { words, icon: Icon, isDone, action } }: { step: Step }) {
  return (
    <li className={classes.step} data-done={isDone}>
      <span className={classes.mark}>
        {isDone ? (
          <CheckIcon width={18} aria-label={text.overview.isDone} />
        ) : (
          <Icon width={20} aria-hidden />
        )}
      </span>
      <div className={classes.words}>
        <Text fw={550}>{words[0]}</Text>
        <Text size="sm" c="dimmed">
          {words[1]}
        </Text>
      </div>
      {!isDone && action}
    </li>
  );
}

function ChooseFile() {
  return (
    <ChooseFiles>
      {(props) => (
        <Button {...props} variant="default" leftSection={<ArrowUpTrayIcon width={16} />}>
          {text.overview.chooseFile}
        </Button>
      )}
    </ChooseFiles>
  );
}
