/** Where one begins: five first steps, what there is, and how the cloud is doing. */

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
import { ButtonLink } from '../../parts/links.tsx';
import { Page } from '../../parts/page.tsx';
import { Refused } from '../../parts/refused.tsx';
import { accountQuery } from '../../queries.ts';
import { text } from '../../texts/text.ts';
import { ChooseFiles } from '../../uploads/choose-files.tsx';
import { bucketsQuery } from '../storage/queries.ts';
import { CloudStatus } from './cloud-status.tsx';
import classes from './overview-page.module.css';
import { databasesCountQuery, keysCountQuery, machinesCountQuery, pointsCountQuery } from './queries.ts';

export function OverviewPage() {
  const { data: account } = useQuery(accountQuery);
  const isAdmin = account?.is_admin === true;
  return (
    <Page title={account === undefined ? text.overview.title : text.overview.hello(account.username)}>
      <FirstSteps isAdmin={isAdmin} />
      <CloudStatus isAdmin={isAdmin} />
    </Page>
  );
}

interface Step {
  readonly words: readonly string[];
  readonly icon: ComponentType<SVGProps<SVGSVGElement>>;
  readonly isDone: boolean;
  readonly action: ReactNode;
}

function FirstSteps({ isAdmin }: { isAdmin: boolean }) {
  const buckets = useQuery(bucketsQuery);
  const machines = useQuery(machinesCountQuery);
  const databases = useQuery(databasesCountQuery);
  const keys = useQuery(keysCountQuery);
  const points = useQuery({ ...pointsCountQuery, enabled: isAdmin });
  const { steps } = text.overview;
  const has = (count: number | undefined) => (count ?? 0) > 0;
  const all: Step[] = [
    {
      words: steps.upload,
      icon: ArchiveBoxIcon,
      isDone: buckets.data?.some(({ version_count }) => version_count > 0) === true,
      action: <ChooseFile />,
    },
    { words: steps.machine, icon: ServerIcon, isDone: has(machines.data), action: go('/machines') },
    { words: steps.database, icon: CircleStackIcon, isDone: has(databases.data), action: go('/databases') },
    { words: steps.key, icon: KeyIcon, isDone: has(keys.data), action: go('/account') },
    ...(isAdmin
      ? [{ words: steps.point, icon: LifebuoyIcon, isDone: has(points.data), action: go('/recovery') }]
      : []),
  ];
  const done = all.filter(({ isDone }) => isDone).length;
  return (
    <section aria-labelledby="first">
      <Group justify="space-between" align="baseline">
        <Title order={2} id="first">
          {text.overview.first}
        </Title>
        <Text size="sm" c="dimmed">
          {text.overview.doneCount(done, all.length)}
        </Text>
      </Group>
      <Progress value={(done / all.length) * 100} size={4} my="xs" aria-label={text.overview.first} />
      <Refused error={buckets.error} onRetry={() => buckets.refetch()} />
      <ol className={classes.steps}>
        {all.map((step) => (
          <StepRow key={step.words[0]} step={step} />
        ))}
      </ol>
    </section>
  );
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
      {action}
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

function go(to: '/machines' | '/databases' | '/account' | '/recovery') {
  return (
    <ButtonLink to={to} variant="default">
      {text.overview.open}
    </ButtonLink>
  );
}
