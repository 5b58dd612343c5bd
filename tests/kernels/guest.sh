#!/bin/busybox sh
# The first process of a guest: makes the host's root directory its own, read-only below a layer in memory, and runs the
# checks there, those of units as a service of systemd. Arguments come on the kernel's command line: checks=COMMAND.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r module parameters; do
    # shellcheck disable=SC2086  # a list of parameters
    insmod "/lib/$module" $parameters 2>/dev/null || echo "guest: no $module" >/dev/console
done </modules
mkdir -p /host /layer /root /results
mount -t 9p -o trans=virtio,version=9p2000.L,cache=loose,msize=262144,ro host /host
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 results /results
mount -t tmpfs -o size=1g layer /layer
mkdir -p /layer/upper /layer/work
mount -t overlay -o lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work overlay /root
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tracefs tracefs /sys/kernel/tracing
for directory in proc sys dev; do mount --rbind "/$directory" "/root/$directory"; done
mount -t tmpfs tmp /root/tmp
mkdir -p /root/tmp/results
mount --bind /results /root/tmp/results
checks=$(sed 's/.*checks=//' /proc/cmdline)
case "$checks " in
*" unit "*)
    mount -t tmpfs run /root/run
    mkdir -p /root/run/systemd/system
    printf '%s\n' '[Unit]' DefaultDependencies=no '[Service]' Environment=HOME=/tmp \
        Environment=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        "ExecStart=/bin/sh -c '$checks >/dev/console 2>&1; sync; poweroff -ff'" >/root/run/systemd/system/checks.service
    exec chroot /root /lib/systemd/systemd --unit=checks.service
    ;;
esac
echo "guest: root shell after $(cut -d' ' -f1 /proc/uptime) s" >/dev/console
chroot /root /usr/bin/env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp /bin/sh -c "$checks" >/dev/console 2>&1
sync
poweroff -f
