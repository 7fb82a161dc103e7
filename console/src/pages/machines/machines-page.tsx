import { Text } from '@mantine/core';
import { Page } from '../../parts/page.tsx';
import { text } from '../../texts/text.ts';

export function MachinesPage() {
  return (
    <Page title={text.machines.title}>
      <Text>{text.machines.soon}</Text>
    </Page>
  );
}
