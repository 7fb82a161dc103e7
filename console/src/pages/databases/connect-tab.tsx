/** How to connect to a database: address and sample code. */

import { EyeIcon, EyeSlashIcon } from '@heroicons/react/24/outline';
import { Button, Group, SegmentedControl, Stack, Switch, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type {
  Database,
  DatabaseConnection,
  DatabaseCredentials,
  DatabaseEngine,
} from '../../../../sdk/index.ts';
import { CodeLine } from '../../parts/commands/code.tsx';
import { CopyIcon } from '../../parts/commands/copy.tsx';
import { givePassword } from '../../parts/forms/password-question.ts';
import { Loaded } from '../../parts/page.tsx';
import { sayBytes } from '../../parts/say.ts';
import { Facts } from '../../parts/tables/facts.tsx';
import { text } from '../../texts/text.ts';
import { credentialsQuery, testDatabasesQuery } from './queries/queries.ts';

const words = text.databases.connect;
const LANGUAGES = ['node', 'python', 'go', 'php', 'cli'] as const;

export function ConnectTab({ database, engine }: { database: Database; engine: DatabaseEngine }) {
  const [isVerified, setVerified] = useState(false);
  const credentials = useQuery(credentialsQuery(database.database_id, isVerified));
  /** An old session must give its password first. */
  const readPassword = async () => {
    if (await givePassword()) await credentials.refetch();
  };
  const offersTls = engine.traits.offers_tls && !database.connection.tls;
  return (
    <>
      {offersTls && (
        <Switch
          mb="md"
          label={words.verify}
          description={words.verifyLead}
          checked={isVerified}
          onChange={(event) => setVerified(event.currentTarget.checked)}
        />
      )}
      <Loaded query={credentials}>
        {(read) => <Connect credentials={read} readPassword={readPassword} />}
      </Loaded>
      {engine.traits.has_test_databases && <TestDatabases id={database.database_id} />}
    </>
  );
}

/** Test databases that programs created, if any. */
function TestDatabases({ id }: { id: string }) {
  const { data = [] } = useQuery(testDatabasesQuery(id));
  if (data.length === 0) return null;
  return (
    <section>
      <Title order={2} mt="xl" mb={4}>
        {words.tests}
      </Title>
      <Text size="sm" c="dimmed" mb="xs">
        {words.testsLead}
      </Text>
      <Facts facts={data.map(({ name, size_bytes }) => ({ name, value: sayBytes(size_bytes) }))} />
    </section>
  );
}

interface ConnectProps {
  readonly credentials: DatabaseCredentials;
  /** Reads the credentials again, with the password. */
  readonly readPassword: () => Promise<void>;
}

function Connect({ credentials, readPassword }: ConnectProps) {
  const { connection, ca } = credentials;
  const isHidden = connection.password === undefined;
  const [wantsShown, setShown] = useState(false);
  const isShown = wantsShown && !isHidden;
  const [language, setLanguage] = useState('node');
  const [languages, frameworks] = codesOf(credentials);
  const { code = '', file } = [...languages, ...frameworks].find(({ value }) => value === language) ?? {};
  const shown = (code: string) => (isShown ? code : withoutPassword(code, connection.password));
  return (
    <Stack gap="xl">
      <section>
        <Group justify="space-between" mb="xs">
          <Title order={2}>{words.uri}</Title>
          <Button
            size="compact-sm"
            variant="default"
            leftSection={isShown ? <EyeSlashIcon width={16} /> : <EyeIcon width={16} />}
            onClick={() => {
              setShown(!isShown);
              if (isHidden) void readPassword();
            }}
          >
            {isShown ? words.hide : words.show}
          </Button>
        </Group>
        <CodeLine value={connection.uri} shown={shown(connection.uri)} label={words.copyUri} />
        <Text size="sm" c="dimmed" mt={6}>
          {isHidden ? words.hiddenLead : words.uriLead}
        </Text>
        {connection.private_uri !== null && (
          <>
            <Text size="sm" mt="sm" mb={6}>
              {words.privateLead}
            </Text>
            <CodeLine
              value={connection.private_uri}
              shown={shown(connection.private_uri)}
              label={words.copyPrivate}
            />
          </>
        )}
      </section>
      <Parts connection={connection} />
      <section>
        <Title order={2} mb="xs">
          {words.code}
        </Title>
        <SegmentedControl
          mb="xs"
          maw="100%"
          aria-label={words.language}
          value={language}
          data={languages.map(({ value, label }) => ({ value, label }))}
          onChange={setLanguage}
        />
        {frameworks.length > 0 && (
          <SegmentedControl
            mb="xs"
            maw="100%"
            aria-label={words.framework}
            value={language}
            data={frameworks.map(({ value, label }) => ({ value, label }))}
            onChange={setLanguage}
          />
        )}
        {file !== undefined && (
          <Text size="sm" c="dimmed" mb={6} className="mono">
            {file}
          </Text>
        )}
        <CodeLine value={code} shown={shown(code)} label={words.copyCode} />
      </section>
      {ca !== null && (
        <section>
          <Title order={2} mb={4}>
            {words.ca}
          </Title>
          <Text size="sm" c="dimmed" mb="xs">
            {words.caLead}
          </Text>
          <CodeLine value={ca} label={words.copyCa} />
        </section>
      )}
    </Stack>
  );
}

/** Code of languages, and settings of frameworks. */
function codesOf({ snippets, frameworks }: DatabaseCredentials) {
  return [
    LANGUAGES.map((value) => ({
      value: String(value),
      label: words.languages[value],
      code: snippets[value],
      file: undefined,
    })),
    frameworks.map(({ framework, file, code }) => ({ value: framework, label: framework, code, file })),
  ] as const;
}

/** For display only; copying includes the password. */
function withoutPassword(code: string, password: string | undefined): string {
  return password === undefined || password === '' ? code : code.replaceAll(password, '••••••••');
}

function Parts({ connection }: { connection: DatabaseConnection }) {
  const { host, port, database, username, tls } = connection;
  const copied = [
    { name: words.host, value: host },
    { name: words.port, value: String(port) },
    { name: words.database, value: database },
    { name: words.user, value: username },
  ].map(({ name, value }) => ({
    name,
    value: (
      <Group gap={4} wrap="nowrap">
        <span className="mono">{value}</span>
        <CopyIcon value={value} label={words.copyValue(name)} />
      </Group>
    ),
  }));
  return <Facts facts={[...copied, { name: words.tls, value: tls ? words.yes : words.no }]} />;
}
