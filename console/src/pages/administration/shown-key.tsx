/** The API key of an account, to be handed over. */
import { Stack, Text } from '@mantine/core';
import type { Account } from '../../../../sdk/index.ts';
import { CodeLine } from '../../parts/code-line.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { text } from '../../texts/text.ts';

const { administration } = text;

interface ShownKeyProps {
  /** Nothing is shown without it. */
  readonly made: Pick<Account, 'username' | 'api_key'> | undefined;
  readonly onClose: () => void;
}

export function ShownKey({ made, onClose }: ShownKeyProps) {
  return (
    <Dialog opened={typeof made?.api_key === 'string'} onClose={onClose} title={administration.apiKey}>
      <Stack>
        <Text size="sm">{administration.apiKeyLead(made?.username ?? '')}</Text>
        <CodeLine value={made?.api_key ?? ''} label={administration.copyKey} />
      </Stack>
    </Dialog>
  );
}
