/** Engine cards, with the reason for unavailable ones; a name is filled in, so that one click is enough. */

import { Button, NumberInput, SimpleGrid, Stack, Text, TextInput } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { Database, DatabaseEngine, NewDatabase } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { CallSample } from '../../parts/commands/call-sample.tsx';
import { TooFewCredits } from '../../parts/credit-warning.tsx';
import { type Choice, Choices } from '../../parts/forms/choices.tsx';
import { SubmitBar } from '../../parts/forms/submit-bar.tsx';
import { Refused } from '../../parts/forms/warning.tsx';
import { Loaded, Page } from '../../parts/page.tsx';
import { QuoteLine } from '../../parts/quote-line.tsx';
import { sayWhole } from '../../parts/say.ts';
import { AnchorLink } from '../../parts/tables/links.tsx';
import { text } from '../../texts/text.ts';
import { databaseQuery, databasesQuery, enginesQuery } from './queries/queries.ts';

const words = text.databases;
const DEFAULT_LIMIT_MB = 1024;
const MAX_CREATE_TRIES = 1000;
/** `name`: undefined while the suggested name is used. */
const NOTHING = { name: undefined as string | undefined, size_limit_mb: DEFAULT_LIMIT_MB };

export function NewDatabasePage() {
  const engines = useQuery(enginesQuery);
  return (
    <Page
      title={words.create}
      lead={words.form.lead}
      trail={<AnchorLink to="/databases">{words.title}</AnchorLink>}
    >
      <Loaded query={engines}>{(all) => <Form engines={all} />}</Loaded>
    </Page>
  );
}

/** `app-db`, with a number if it is taken. */
function useFreeName(): string {
  const { data: databases = [] } = useQuery({ ...databasesQuery, refetchInterval: false });
  const taken = new Set(databases.map(({ name }) => name));
  let name = 'app-db';
  for (let number = 2; taken.has(name) && number < MAX_CREATE_TRIES; number++) name = `app-db-${number}`;
  return name;
}

function Form({ engines }: { engines: readonly DatabaseEngine[] }) {
  const { engine: asked } = useSearch({ from: '/shell/databases/new' });
  const first = engines.find((one) => one.default && one.available) ?? engines.find((one) => one.available);
  const [chosen, setChosen] = useState<string | undefined>(asked);
  const engine =
    engines.find((one) => one.engine === chosen && (one.available || one.preparing !== null)) ?? first;
  const freeName = useFreeName();
  const bodyOf = ({ name, size_limit_mb }: typeof NOTHING): NewDatabase => ({
    name: name ?? freeName,
    ...(engine === undefined ? {} : { engine: engine.engine }),
    ...(size_limit_mb === DEFAULT_LIMIT_MB ? {} : { size_limit_mb }),
  });
  const form = useCloudForm({
    values: NOTHING,
    send: (values) => cloud.createDatabase(bodyOf(values)),
    invalidates: [databasesQuery],
    onDone: useOpening(),
  });
  const body = bodyOf(form.values);
  return (
    <form onSubmit={form.submit}>
      <Stack gap="xl">
        <Choices
          label={words.form.engine}
          columns={2}
          value={engine?.engine ?? ''}
          options={engines.map(engineChoice)}
          error={form.errorOf('engine')}
          onChange={setChosen}
        />
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <TextInput
            label={words.name}
            description={words.form.nameRule}
            value={body.name}
            error={form.errorOf('name')}
            required
            withAsterisk={false}
            spellCheck={false}
            onChange={({ currentTarget }) => form.set({ name: currentTarget.value })}
          />
          <NumberInput
            label={words.form.sizeLimit}
            description={words.form.sizeLimitLead(sayWhole(engine?.limits.size_mb ?? DEFAULT_LIMIT_MB))}
            min={1}
            thousandSeparator=","
            {...form.of('size_limit_mb')}
            onChange={(value) => form.set({ size_limit_mb: Number(value) || DEFAULT_LIMIT_MB })}
          />
        </SimpleGrid>
        <Refused {...form.refusal} />
        <SubmitBar notice={<TooFewCredits needed={0} />}>
          <Price engine={engine?.engine} />
          <Button type="submit" loading={form.isBusy} disabled={engine === undefined}>
            {words.form.submit}
          </Button>
        </SubmitBar>
        <CallSample operation="createDatabase" args={[body]} />
      </Stack>
    </form>
  );
}

/** Leads to the page of a new database. */
function useOpening() {
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  return async (database: Database) => {
    const { database_id: id } = database;
    queryClient.setQueryData(databaseQuery(id).queryKey, database);
    await navigate({ to: '/databases/$database', params: { database: id } });
  };
}

function engineChoice(entry: DatabaseEngine): Choice {
  const { engine, title, summary, available, preparing, version, reason, fix } = entry;
  const { form } = words;
  const about = [summary, version === null ? null : form.version(version), reason];
  const missing = [form.unavailable, reason, fix === null ? null : form.fix(fix)];
  const coming = preparing && [summary, form.preparing(preparing)];
  return {
    value: engine,
    title,
    isMarked: true,
    isDisabled: !available && coming === null,
    notes: (coming ?? (available ? about : missing)).filter((note) => note !== null),
  };
}

function Price({ engine }: { engine: string | undefined }) {
  if (engine === undefined) return <span />;
  return (
    <div>
      <Text size="sm" c="dimmed">
        {words.price}
      </Text>
      <QuoteLine of={{ resource_type: 'database', engine }} isBySize />
    </div>
  );
}
