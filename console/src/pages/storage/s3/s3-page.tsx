/** S3 access: the endpoint, the keys for programs, and how to set up a client. */

import { KeyIcon, PlusIcon } from '@heroicons/react/24/outline';
import { Button, Code, Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { S3Endpoint } from '../../../../../sdk/index.ts';
import { Prose } from '../../../parts/commands/code.tsx';
import { CopyIcon } from '../../../parts/commands/copy.tsx';
import { Warning } from '../../../parts/forms/warning.tsx';
import { isLoopback } from '../../../parts/loopback.ts';
import { Empty, Loaded, Page } from '../../../parts/page.tsx';
import { Facts } from '../../../parts/tables/facts.tsx';
import { AnchorLink } from '../../../parts/tables/links.tsx';
import { useIsAdmin } from '../../../queries.ts';
import { s3Text } from '../../../texts/s3-text.ts';
import { text } from '../../../texts/text.ts';
import { accessKeysQuery } from '../../account/queries.ts';
import { NO_KEY } from '../../account/s3-clients.ts';
import { isForStorage, S3Snippets } from '../../account/s3-snippets.tsx';
import { s3EndpointQuery } from '../queries.ts';
import { NewS3KeyForm } from './new-s3-key-form.tsx';
import { S3Keys } from './s3-keys.tsx';

const words = s3Text;

export function S3Page() {
  const { create = false } = useSearch({ from: '/shell/storage/s3' });
  const navigate = useNavigate({ from: '/storage/s3' });
  const setOpen = (isOpen: boolean) =>
    void navigate({ search: isOpen ? { create: true } : {}, replace: true, resetScroll: false });
  const endpoint = useQuery(s3EndpointQuery);
  const keys = useQuery(accessKeysQuery);
  const createButton = (
    <Button leftSection={<PlusIcon width={18} />} onClick={() => setOpen(true)}>
      {text.storage.createS3Key}
    </Button>
  );
  return (
    <Page
      title={words.title}
      trail={<AnchorLink to="/storage">{text.storage.title}</AnchorLink>}
      lead={words.lead}
      actions={createButton}
    >
      <Loaded query={endpoint}>{(found) => <Endpoint found={found} />}</Loaded>
      <Stack component="section" gap="xs" aria-labelledby="s3-keys">
        <Title order={2} id="s3-keys">
          {words.keys}
        </Title>
        <Loaded query={keys}>
          {(all) => {
            const own = all.filter(isForStorage);
            return own.length === 0 ? (
              <Empty icon={KeyIcon} title={words.noKeys} action={createButton}>
                {words.noKeysLead}
              </Empty>
            ) : (
              <S3Keys keys={own} />
            );
          }}
        </Loaded>
      </Stack>
      {endpoint.data !== undefined && (
        <Stack component="section" gap="xs" aria-labelledby="s3-set-up">
          <Title order={2} id="s3-set-up">
            {words.setUp}
          </Title>
          <Text size="sm" c="dimmed">
            {words.setUpLead}
          </Text>
          <S3Snippets setUp={{ ...NO_KEY, endpoint: endpoint.data.endpoint }} />
        </Stack>
      )}
      <Stack component="section" gap="xs" aria-labelledby="encryption-keys">
        <Title order={2} id="encryption-keys">
          {s3Text.encryptionKeys.title}
        </Title>
        <Text size="sm" c="dimmed">
          {s3Text.encryptionKeys.lead}
        </Text>
        <div>
          <AnchorLink to="/storage/s3/encryption-keys">{s3Text.encryptionKeys.open}</AnchorLink>
        </div>
      </Stack>
      {create && <NewS3KeyForm onClose={() => setOpen(false)} />}
    </Page>
  );
}

function Endpoint({ found: { endpoint, region, domains } }: { found: S3Endpoint }) {
  const isAdmin = useIsAdmin();
  return (
    <Stack gap="md">
      <Facts
        isWide
        facts={[
          { name: words.endpoint, value: <Copied value={endpoint} label={words.endpoint} /> },
          { name: words.region, value: <Copied value={region} label={words.region} /> },
          {
            name: words.addressing,
            value: domains.length === 0 ? words.pathStyle : words.hostStyle(domains.join(', ')),
          },
        ]}
      />
      {isLoopback(endpoint) && (
        <Warning title={words.onlyHere}>{isAdmin && <Prose>{words.onlyHereAdmin}</Prose>}</Warning>
      )}
    </Stack>
  );
}

function Copied({ value, label }: { value: string; label: string }) {
  return (
    <Group gap={4} wrap="nowrap">
      <Code style={{ overflowWrap: 'anywhere' }}>{value}</Code>
      <CopyIcon value={value} label={words.copy(label)} />
    </Group>
  );
}
