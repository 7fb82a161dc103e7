/** Five first steps, ticked off when done. One line once one is done, until they are all done or hidden. */
import {
  ArchiveBoxIcon,
  ArrowUpTrayIcon,
  CheckIcon,
  CircleStackIcon,
  KeyIcon,
  LifebuoyIcon,
  ServerIcon,
} from '@heroicons/react/24/outline';
import { Button, CloseButton, Group, Progress, Text, Title } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import type { ComponentType, ReactNode, SVGProps } from 'react';
import { Refused } from '../../parts/forms/warning.tsx';
import { ButtonLink } from '../../parts/tables/links.tsx';
import { overviewText } from '../../texts/pages/overview-text.ts';
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

interface FirstStepsProps {
  readonly isAdmin: boolean;
  readonly accountId: number;
}

export function FirstSteps({ isAdmin, accountId }: FirstStepsProps) {
  const { steps, areRead, failed } = useSteps(isAdmin);
  const [shown, show] = useLocalStorage<'folded' | 'open' | 'hidden'>({
    key: `cloudlet.first-steps.${accountId}`,
    defaultValue: 'folded',
    getInitialValueInEffect: false,
  });
  const done = steps.filter(({ isDone }) => isDone).length;
  if (failed !== undefined) return <Refused error={failed.error} onRetry={() => failed.refetch()} />;
  if (!areRead || shown === 'hidden' || done === steps.length) return null;
  const isOpen = done === 0 || shown === 'open';
  return (
    <section aria-labelledby="first">
      <Group justify="space-between">
        <Title order={2} id="first">
          {overviewText.first}
        </Title>
        <Group gap="xs">
          <Text size="sm" c="dimmed">
            {overviewText.doneCount(done, steps.length)}
          </Text>
          {done > 0 && (
            <>
              <Button
                variant="default"
                size="compact-sm"
                aria-expanded={isOpen}
                onClick={() => show(isOpen ? 'folded' : 'open')}
              >
                {isOpen ? overviewText.foldSteps : overviewText.showSteps}
              </Button>
              <CloseButton aria-label={overviewText.hideSteps} onClick={() => show('hidden')} />
            </>
          )}
        </Group>
      </Group>
      <Progress value={(done / steps.length) * 100} size={4} my="xs" aria-label={overviewText.first} />
      {isOpen && (
        <ol className={classes.steps}>
          {steps.map((step) => (
            <StepRow key={step.words[0]} step={step} />
          ))}
        </ol>
      )}
    </section>
  );
}

interface Steps {
  readonly steps: readonly Step[];
  /** Whether the state of every step is known. */
  readonly areRead: boolean;
  /** A list that could not be read: its step may be done. */
  readonly failed: { readonly error: unknown; readonly refetch: () => unknown } | undefined;
}

function useSteps(isAdmin: boolean): Steps {
  const lists = [
    useQuery(bucketsQuery),
    useQuery(vmsQuery),
    useQuery(databasesQuery),
    useQuery(accessKeysQuery),
    useQuery({ ...pointsQuery, enabled: isAdmin }),
  ] as const;
  const [{ data: buckets = [] }, { data: machines = [] }, { data: databases = [] }] = lists;
  const [, , , { data: keys = [] }, { data: points = [] }] = lists;
  const { steps } = overviewText;
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
          {overviewText.openRecovery}
        </ButtonLink>
      ),
    },
  ];
  return {
    steps: isAdmin ? all : all.slice(0, -1),
    areRead: !lists.some(({ isLoading }) => isLoading),
    failed: lists.find(({ isLoadingError }) => isLoadingError),
  };
}

function StepRow({ step: { words, icon: Icon, isDone, action } }: { step: Step }) {
  return (
    <li className={classes.step} data-done={isDone}>
      <span className={classes.mark}>
        {isDone ? <CheckIcon width={18} aria-label={overviewText.isDone} /> : <Icon width={20} aria-hidden />}
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
          {overviewText.chooseFile}
        </Button>
      )}
    </ChooseFiles>
  );
}
