# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The machine of virtme/machine.sh behind a firmware with Secure Boot: OVMF with the usual keys enrolled, Debian's signed
# shim and GRUB, Debian's signed kernel, and DKMS's certificate where `mokutil --import` and the next boot put it.  Sourced by
# virtme/test-deb.sh.

# firmware KERNEL: the firmware's variables and a boot disk in out/deb/, and modules that must be refused in $SHARE.
firmware() {
	in_machine "$MACHINE" bash -euc '
		cd /srv/debs
		apt-get -qy download shim-signed grub-efi-amd64-signed
		openssl x509 -inform DER -in /var/lib/dkms/mok.pub -out mok.pem
		openssl req -new -x509 -nodes -subj "/CN=nobody knows me" -newkey rsa:2048 -keyout other.key -outform DER -out other.pub 2>/dev/null
		xz -dc "/lib/modules/$1/updates/dkms/autocork_policy.ko.xz" >signed.ko
		# See signed() in test-deb.sh.
		length=$((0x$(tail -c 32 signed.ko | head -c 4 | od -An -tx1 | tr -d " \n")))
		head -c $(($(stat -c %s signed.ko) - 40 - length)) signed.ko >unsigned.ko
		"/usr/lib/linux-kbuild-${1%-*}/scripts/sign-file" sha256 other.key other.pub unsigned.ko other-key.ko' bash "$1"
	mv "$MACHINE"/srv/debs/{unsigned,other-key}.ko "$SHARE/"
	"$TOP/virtme/enter.sh" -b "$MACHINE:/mnt" -- bash -euc '
		for deb in /mnt/srv/debs/{shim,grub}-*.deb; do dpkg-deb -x "$deb" /tmp/efi; done
		cat >/tmp/grub.cfg <<-END
			linux /vmlinuz $2
			initrd /initrd.img
			boot
		END
		rm -f out/deb/boot.img
		truncate -s 256M out/deb/boot.img
		mkfs.vfat -F 32 out/deb/boot.img >/dev/null
		export MTOOLSRC=/dev/null
		mmd -i out/deb/boot.img ::/EFI ::/EFI/BOOT ::/EFI/debian
		mcopy -i out/deb/boot.img /tmp/efi/usr/lib/shim/shimx64.efi.signed ::/EFI/BOOT/BOOTX64.EFI
		mcopy -i out/deb/boot.img /tmp/efi/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed ::/EFI/BOOT/grubx64.efi
		mcopy -i out/deb/boot.img /tmp/grub.cfg ::/EFI/debian/grub.cfg
		mcopy -i out/deb/boot.img "/mnt/boot/vmlinuz-$1" ::/vmlinuz
		mcopy -i out/deb/boot.img "/mnt/boot/initrd.img-$1" ::/initrd.img
		virt-fw-vars -i /usr/share/OVMF/OVMF_VARS_4M.ms.fd -o out/deb/vars.fd \
			--add-mok "$(cat /proc/sys/kernel/random/uuid)" /mnt/srv/debs/mok.pem' \
		bash "$1" "$(kernel_arguments enrolled "$1")"
}

# boot_with_firmware SETTING KERNEL
boot_with_firmware() {
	qemu "$1" -machine q35,smm=on -global driver=cfi.pflash01,property=secure,value=on -global ICH9-LPC.disable_s3=1 \
		-drive if=pflash,unit=0,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.secboot.fd \
		-drive if=pflash,unit=1,format=raw,file=/lowtail/out/deb/vars.fd \
		-drive if=none,id=boot,format=raw,readonly=on,file=/lowtail/out/deb/boot.img \
		-device virtio-blk-pci,drive=boot,bootindex=0
}
