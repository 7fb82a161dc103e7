/** Periodic checks, and the rotation of the master key. */

import { Anchor, Button, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { cloud } from '../../cloud.ts';
import { CodeLine } from '../../parts/commands/code.tsx';
import { Confirm } from '../../parts/forms/dialog.tsx';
import { showDone } from '../../parts/notices.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayBytes } from '../../parts/say.ts';
import { When } from '../../parts/tables/when.tsx';
import { text } from '../../texts/text.ts';
import { ledgerCheckQuery, scrubQuery } from './queries.ts';

const { administration } = text;

export function Upkeep() {
  return (
    <Stack gap="xl">
      <Scrub />
      <LedgerCheck />
      <MasterKey />
      <Metrics />
    </Stack>
  );
}

function Section({ title, lead, children }: { title: string; lead: string; children: ReactNode }) {
  return (
    <Stack component="section" gap="xs" align="flex-start">
      <Title order={2}>{title}</Title>
      <Text c="dimmed" maw="62ch">
        {lead}
      </Text>
      {children}
    </Stack>
  );
}

const damagedOf = (report: Awaited<ReturnType<typeof cloud.getScrub>>) =>
  report.damaged_blobs +
  report.damaged_rows +
  report.damaged_buckets.length +
  report.damaged_databases.length;

function Scrub() {
  const scrub = useQuery(scrubQuery);
  const start = useMutation({
    mutationFn: () => cloud.startScrub(),
    meta: { invalidates: [scrubQuery] },
  });
  return (
    <Section title={administration.scrub} lead={administration.scrubLead}>
      <Loaded query={scrub}>
        {(report) => (
          <>
            {report.started_at !== null && (
              <Text size="sm">
                {administration.scrubbed(
                  report.checked_blobs,
                  sayBytes(report.checked_bytes),
                  report.checked_databases,
                )}{' '}
                {administration.lastEnded} <When at={report.finished_at} />.
              </Text>
            )}
            {damagedOf(report) > 0 && (
              <Text size="sm" c="red">
                {administration.damaged(damagedOf(report))}{' '}
                {[
                  ...report.damaged.map(({ bucket, name }) => `${bucket}/${name}`),
                  ...report.damaged_buckets.map(({ bucket }) => bucket),
                  ...report.damaged_databases.map(({ database_id: id }) => id),
                ].join(', ')}
              </Text>
            )}
            <Button
              variant="default"
              loading={report.running || start.isPending}
              onClick={() => start.mutate()}
            >
              {administration.startScrub}
            </Button>
          </>
        )}
      </Loaded>
    </Section>
  );
}

function LedgerCheck() {
  const check = useQuery(ledgerCheckQuery);
  const start = useMutation({
    mutationFn: () => cloud.startLedgerVerification(),
    meta: { invalidates: [ledgerCheckQuery] },
  });
  return (
    <Section title={administration.ledger} lead={administration.ledgerLead}>
      <Loaded query={check}>
        {({ running, started_at: startedAt, checked, problem, head }) => (
          <>
            {startedAt !== null && (
              <Text size="sm">
                {problem ?? administration.ledgerOk(checked)} (<When at={startedAt} />)
              </Text>
            )}
            {startedAt !== null && !running && problem === null && (
              <>
                <Text size="sm">{administration.ledgerHead}</Text>
                <CodeLine
                  value={`cloudlet ledger verify --head ${head.seq}:${head.hash}`}
                  label={administration.copyHead}
                />
              </>
            )}
            <Button variant="default" loading={running || start.isPending} onClick={() => start.mutate()}>
              {administration.verifyLedger}
            </Button>
          </>
        )}
      </Loaded>
    </Section>
  );
}

function MasterKey() {
  const [isAsking, setAsking] = useState(false);
  const rotate = useMutation({
    mutationFn: () => cloud.rotateMasterKey(),
    meta: { shown: true },
    onSuccess: ({ resealed }) => {
      setAsking(false);
      showDone(administration.rotated(resealed));
    },
  });
  return (
    <Section title={administration.masterKey} lead={administration.masterKeyLead}>
      <Button variant="default" onClick={() => setAsking(true)}>
        {administration.rotate}
      </Button>
      <Confirm
        isOpen={isAsking}
        title={administration.rotateAsk}
        action={administration.rotate}
        isBusy={rotate.isPending}
        error={rotate.error}
        onConfirm={() => rotate.mutate()}
        onClose={() => setAsking(false)}
      >
        {administration.rotateLead}
      </Confirm>
    </Section>
  );
}

/** Metrics open in the browser, and Prometheus reads them with a key. */
function Metrics() {
  return (
    <Section title={administration.metrics} lead={administration.metricsLead}>
      <Anchor href="/api/admin/metrics" target="_blank" rel="noreferrer">
        /api/admin/metrics
      </Anchor>
    </Section>
  );
}
