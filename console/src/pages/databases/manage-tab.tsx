/** Actions on a whole database: settings, fork, dump, load, restart, password, delete. */

import {
  Button,
  Checkbox,
  Group,
  NativeSelect,
  NumberInput,
  Stack,
  Switch,
  Text,
  TextInput,
} from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Database, DatabaseChange, DatabaseEngine } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { CallSample } from '../../parts/commands/call-sample.tsx';
import { CodeLine } from '../../parts/commands/code.tsx';
import { Confirm, Dialog } from '../../parts/forms/dialog.tsx';
import { Refused } from '../../parts/forms/warning.tsx';
import { showDone } from '../../parts/notices.tsx';
import { databaseCareText as words } from '../../texts/database-care-text.ts';
import { text } from '../../texts/text.ts';
import { DumpPart, LoadPart, Part } from './manage-parts.tsx';
import { databasesQuery, keptDatabasesQuery, momentsQuery, pointsQuery } from './queries/queries.ts';

export function ManageTab({ database, engine }: { database: Database; engine: DatabaseEngine }) {
  return (
    <Stack gap="md" maw={760}>
      <SettingsPart key={`${database.name} ${database.size_limit_mb}`} database={database} />
      <ForkPart database={database} />
      <DumpPart database={database} />
      <LoadPart database={database} engine={engine} />
      <RestartPart database={database} isShared={engine.traits.has_account_server} />
      <RotatePart database={database} />
      <DeletePart database={database} />
    </Stack>
  );
}

/** A way out when its sessions occupy the whole server. */
function RestartPart({ database: { database_id: id }, isShared }: { database: Database; isShared: boolean }) {
  const [isAsked, setAsked] = useState(false);
  const restart = useMutation({
    mutationFn: () => cloud.restartDatabase(id),
    meta: { shown: true },
    onSuccess: () => {
      setAsked(false);
      showDone(words.restarted);
    },
  });
  return (
    <Part
      title={words.restart}
      lead={isShared ? words.restartLeadShared : words.restartLead}
      action={
        <Button variant="default" onClick={() => setAsked(true)}>
          {words.restartSubmit}
        </Button>
      }
    >
      <Confirm
        isOpen={isAsked}
        title={words.restartAsk}
        action={words.restartSubmit}
        isBusy={restart.isPending}
        error={restart.error}
        onConfirm={() => restart.mutate()}
        onClose={() => setAsked(false)}
      >
        {isShared ? words.restartLeadShared : words.restartLead}
      </Confirm>
    </Part>
  );
}

/** Rotates the password and shows the new connection string. */
function RotatePart({ database: { database_id: id, name } }: { database: Database }) {
  const [isAsked, setAsked] = useState(false);
  const [uri, setUri] = useState<string | null>(null);
  const rotate = useMutation({
    mutationFn: () => cloud.rotateDatabaseCredentials(id),
    meta: { shown: true, invalidates: [{ queryKey: ['databases', id, 'credentials'] }] },
    onSuccess: ({ connection }) => {
      setAsked(false);
      setUri(connection.uri);
    },
  });
  return (
    <Part
      title={words.rotate}
      lead={words.rotateLead}
      action={
        <Button variant="default" onClick={() => setAsked(true)}>
          {words.rotateSubmit}
        </Button>
      }
    >
      <Confirm
        isOpen={isAsked}
        title={words.rotateAsk(name)}
        action={words.rotateSubmit}
        isBusy={rotate.isPending}
        error={rotate.error}
        onConfirm={() => rotate.mutate()}
        onClose={() => setAsked(false)}
      >
        {words.rotateAskLead}
      </Confirm>
      <Dialog opened={uri !== null} onClose={() => setUri(null)} title={words.rotated} size="lg">
        <Stack>
          <Text size="sm">{words.rotatedLead}</Text>
          <CodeLine value={uri ?? ''} label={text.databases.connect.copyUri} />
          <Group justify="flex-end">
            <Button onClick={() => setUri(null)}>{words.done}</Button>
          </Group>
        </Stack>
      </Dialog>
    </Part>
  );
}

/** Selected instead of a recovery point. */
const MOMENT = 'moment';

/** Creates a copy of the database, as of now, a moment or a recovery point. */
function ForkPart({ database: { database_id: id, name: original } }: { database: Database }) {
  const navigate = useNavigate();
  const { data: points = [] } = useQuery(pointsQuery(id));
  const { windows, reason } = useQuery(momentsQuery(id)).data ?? { windows: [], reason: null };
  const bodyOf = ({ name, point_id: point, at }: { name: string; point_id: string; at: string }) => ({
    name,
    from: { database_id: id, ...(point === MOMENT ? { at } : point !== '' && { point_id: point }) },
  });
  const form = useCloudForm({
    values: { name: `${original}-copy`, point_id: '', at: '' },
    send: (values) => cloud.createDatabase(bodyOf(values)),
    invalidates: [databasesQuery],
    onDone: async (made) => {
      showDone(words.forked(made.name));
      await navigate({ to: '/databases/$database', params: { database: made.database_id } });
    },
  });
  return (
    <Part title={words.fork} lead={words.forkLead}>
      <form onSubmit={form.submit}>
        <Stack mt="sm">
          <Group align="flex-end">
            <TextInput flex={1} miw={180} label={words.forkName} spellCheck={false} {...form.text('name')} />
            {points.length + windows.length > 0 && (
              <NativeSelect
                label={words.forkFrom}
                data={[
                  { value: '', label: words.forkNow },
                  ...windows.slice(0, 1).map(() => ({ value: MOMENT, label: words.forkMoment })),
                  ...points.map(({ point_id, created_at }) => ({
                    value: point_id,
                    label: words.forkAt(created_at),
                  })),
                ]}
                {...form.text('point_id')}
              />
            )}
            {form.values.point_id === MOMENT && (
              <TextInput
                label={words.forkTime}
                description={words.forkWindows(windows)}
                placeholder={windows[0]?.to}
                spellCheck={false}
                {...form.text('at')}
              />
            )}
            <Button type="submit" variant="default" loading={form.isBusy}>
              {words.forkSubmit}
            </Button>
          </Group>
          {reason !== null && (
            <Text size="sm" c="dimmed">
              {words.forkNoMoment(reason)}
            </Text>
          )}
          <Refused {...form.refusal} />
          <CallSample operation="createDatabase" args={[bodyOf(form.values)]} />
        </Stack>
      </form>
    </Part>
  );
}

/** Name, size limit, protection. */
function SettingsPart({ database }: { database: Database }) {
  const { database_id: id } = database;
  const { saved, protection, protectionLead, save } = words;
  const bodyOf = ({ name, size_limit_mb }: Pick<Database, 'name' | 'size_limit_mb'>): DatabaseChange => ({
    ...(name === database.name ? {} : { name }),
    ...(size_limit_mb === database.size_limit_mb ? {} : { size_limit_mb }),
  });
  const form = useCloudForm({
    values: { name: database.name, size_limit_mb: database.size_limit_mb },
    send: (values) => cloud.changeDatabase(id, bodyOf(values)),
    invalidates: [databasesQuery],
    onDone: () => showDone(saved),
  });
  const protect = useMutation({
    mutationFn: (isOn: boolean) => cloud.changeDatabase(id, { delete_protection: isOn }),
    meta: { invalidates: [databasesQuery] },
    onSuccess: () => showDone(saved),
  });
  const body = bodyOf(form.values);
  return (
    <Part title={words.rename}>
      <form onSubmit={form.submit}>
        <Stack mt="sm">
          <Group align="flex-end">
            <TextInput
              flex={1}
              miw={180}
              label={text.databases.name}
              spellCheck={false}
              {...form.text('name')}
            />
            <NumberInput
              flex={1}
              miw={180}
              label={text.databases.form.sizeLimit}
              min={1}
              thousandSeparator=","
              {...form.of('size_limit_mb')}
              onChange={(value) => form.set({ size_limit_mb: Number(value) || database.size_limit_mb })}
            />
            <Button
              type="submit"
              variant="default"
              loading={form.isBusy}
              disabled={Object.keys(body).length === 0}
            >
              {save}
            </Button>
          </Group>
          <Switch
            label={protection}
            description={protectionLead}
            checked={database.delete_protection}
            onChange={({ currentTarget }) => protect.mutate(currentTarget.checked)}
          />
          <Refused {...form.refusal} />
          <CallSample operation="changeDatabase" args={[id, body]} />
        </Stack>
      </form>
    </Part>
  );
}

/** Deletes the database; the message offers Undo while a dump is kept. */
function DeletePart({ database: { database_id: id, name } }: { database: Database }) {
  const [isAsked, setAsked] = useState(false);
  const [isKept, setKept] = useState(true);
  const navigate = useNavigate();
  /** Both lists; the deleted database's page is not reloaded. */
  const invalidates = [databasesQuery, keptDatabasesQuery].map(({ queryKey }) => ({ queryKey, exact: true }));
  const undo = useMutation({
    mutationFn: () => cloud.undeleteDatabase(id),
    meta: { invalidates },
    onSuccess: () => showDone(text.databases.kept.restored(name)),
  });
  const remove = useMutation({
    mutationFn: () => cloud.deleteDatabase(id, { keep: isKept }),
    meta: { shown: true, invalidates },
    onSuccess: async ({ deletes_at }) => {
      showDone(words.deleted(name), deletes_at === null ? undefined : () => undo.mutate());
      await navigate({ to: '/databases' });
    },
  });
  return (
    <Part
      title={words.delete}
      lead={words.deleteLead}
      action={
        <Button variant="default" c="var(--wrong)" onClick={() => setAsked(true)}>
          {words.deleteSubmit}
        </Button>
      }
    >
      <Confirm
        isOpen={isAsked}
        title={words.deleteAsk(name)}
        action={words.deleteSubmit}
        typed={name}
        isBusy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate()}
        onClose={() => setAsked(false)}
      >
        {words.deleteAskLead}
        <Checkbox
          mt="sm"
          label={words.deleteForGood}
          checked={!isKept}
          onChange={({ currentTarget }) => setKept(!currentTarget.checked)}
        />
      </Confirm>
    </Part>
  );
}
