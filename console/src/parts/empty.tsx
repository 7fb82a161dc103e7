/** A page with nothing on it yet: what belongs here, and the first step. */
import { Stack, Text, Title } from '@mantine/core';
import type { ComponentType, ReactNode, SVGProps } from 'react';
import classes from './empty.module.css';

interface EmptyProps {
  readonly icon: ComponentType<SVGProps<SVGSVGElement>>;
  readonly title: string;
  readonly children: ReactNode;
  readonly action?: ReactNode;
}

export function Empty({ icon: Icon, title, children, action }: EmptyProps) {
  return (
    <Stack align="center" gap="xs" className={classes.empty}>
      <Icon className={classes.icon} aria-hidden />
      <Title order={2}>{title}</Title>
      <Text c="dimmed" ta="center" maw="46ch">
        {children}
      </Text>
      {action}
    </Stack>
  );
}
